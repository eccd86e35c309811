/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_page: a report as one HTML page that needs no other file and no network. `bench --report`
 * and `penstock page` fill in one document, and the page is drawn from it:
 *
 *   schema, version   "penstock report", REPORT_VERSION
 *   penstock          the version of the program that made the document
 *   producer          "bench" or "monitor"
 *   made              seconds since 1970
 *   name              of the data set
 *   node              the machine's name
 *   run               what `bench --json` prints; a Monitor fills in the keys that it knows
 *   series            a list, for each rank one: label, begin and seconds (from the start; arrays),
 *                     and arrays of the figures that are known: samples_per_second,
 *                     read_bytes_per_second, waiting (0 to 1), cpu_cores, rss_bytes,
 *                     gpu_utilisation (0 to 1)
 *   n_not_drawn       ranks that are left out of series
 *   times             an object for each of wait, read, decode, copy, finish and stream
 *                     (penstock/diagnostics.h) that has values: n, sum_ns, p50_ns, p95_ns, p99_ns,
 *                     max_ns
 *   wait_buckets      a list: from_ns, below_ns, n (waits.h)
 *   machine           cpu, cores, usable_cores, numa_nodes, memory_bytes, kernels, kernel, libjpeg,
 *                     file_system, rotational, io_uring
 *                     (of a Monitor, which gives `path`, `penstock page` adds it on the same node)
 *   settings          an object of plain values
 *
 * null, and a key that is missing, is a value that is not known.
 */
#ifndef PSTK_CLI_REPORT_PAGE_H
#define PSTK_CLI_REPORT_PAGE_H

struct json_t;

#define REPORT_SCHEMA "penstock report"
#define REPORT_VERSION 1

/* Return an object with the keys above from `schema` to `made`. */
struct json_t *report_page_document(const char *producer);
/* Check that this build can draw pages. Returns 0, or STATUS_USAGE after a message that names
 * `what`, an option or a command. */
int report_page_check(const char *what);
/* Write the page to `path` ("-": standard output). Returns 0, or an exit status after a message. */
int report_page_write(struct json_t *takes, const char *path);

#endif
