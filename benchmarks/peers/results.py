# SPDX-License-Identifier: Apache-2.0
"""Write RESULTS.md from the JSON of a run."""
import statistics

import rows


def spread(values):
    return statistics.median(values), min(values), max(values)


def figure(value):
    """Return a rate with at most four digits."""
    if value >= 1e6:
        return f"{value / 1e6:.2f} M"
    if value >= 1e4:
        return f"{value / 1e3:.1f} k" if value < 1e5 else f"{value / 1e3:.0f} k"
    return f"{value:.0f}"


class Results:
    def __init__(self, given):
        self.machine, self.settings = given["machine"], given["settings"]
        self.found = {entry["name"]: entry for entry in given["rows"]}

    def rates(self, name):
        return self.found.get(name, {}).get("rates", [])

    def best_peer(self, table):
        """Return the row of the fastest peer, by its median, or None if none was measured."""
        peers = [row for row in rows.ROWS
                 if row.table == table and row.kind == "peer" and self.rates(row.name)]
        return max(peers, key=lambda row: statistics.median(self.rates(row.name)), default=None)

    def ratio(self, name, reference):
        """Return median, least and most of the ratios within each round, or None."""
        if reference.startswith("best "):
            best = self.best_peer(reference.removeprefix("best "))
            reference = best.name if best else ""
        pairs = list(zip(self.rates(name), self.rates(reference)))
        return spread([a / b for a, b in pairs]) if pairs else None


def line(*cells):
    return "| " + " | ".join(cells) + " |"


def size_cell(results, row, table):
    size = results.found[row.name]["bytes"]
    n = results.settings["records" if table == "records" else "images"]
    if not size or table == "records":
        return ""
    return f"{size / n / 1000:.0f} kB"


def row_line(results, row, table):
    entry = results.found[row.name]
    title = f"**{row.title}**" if row.kind == "penstock" else row.title
    if not entry["rates"] or entry["why_not"]:
        return line(title, f"({entry['why_not']})", "", "", "")
    median, least, most = spread(entry["rates"])
    best = results.best_peer(table)
    ratio = results.ratio(row.name, best.name) if best else None
    return line(title, figure(median), f"{figure(least)} .. {figure(most)}",
                f"{ratio[0]:.2f}" if ratio else "", size_cell(results, row, table))


def table_lines(results, name):
    table = rows.TABLES[name]
    there = [row for row in rows.ROWS if row.table == name and row.name in results.found]
    if not there:
        return []
    order = sorted(there, key=lambda row: -statistics.median(results.rates(row.name) or [0]))
    about = [f"- {row.title}: {row.note.format(**results.found[row.name]['options'])}."
             for row in there]
    return [f"## {table.title}", "", table.about, "",
            line("loader", f"{table.unit}, median", "least .. most", "/ best peer",
                 "stored, a sample"), "|---|---|---|---|---|",
            *[row_line(results, row, name) for row in order], "", "Settings:", "", *about,
            ""]


def aim_lines(results):
    lines = []
    for aim in rows.AIMS:
        ratio = results.ratio(aim.row, aim.reference)
        if ratio:
            lines.append(line(aim.text, f"{ratio[0]:.2f}", f"{ratio[1]:.2f} .. {ratio[2]:.2f}",
                              f"{aim.least:g}", "yes" if ratio[0] >= aim.least else "no"))
    size = results.found.get("penstock", {}).get("bytes")
    if size and results.settings["image_bytes"]:
        part = size / results.settings["image_bytes"]
        lines.append(line("bytes of the records / bytes of the JPEGs", f"{part:.3f}", "",
                          "<= 0.95", "yes" if part <= 0.95 else "no"))
    if not lines:
        return []
    return ["## Aims", "", "Median, least and most of the ratios within each round.", "",
            line("ratio", "median", "least .. most", "aim", "met"), "|---|---|---|---|---|",
            *lines, ""]


def machine_lines(results):
    m, s = results.machine, results.settings
    return [
        f"- {m['date']}; {m['cpu']} ({', '.join(m['vectors']) or 'no AVX2'}), {m['cores']} of "
        f"{m['cores_there']} cores, {m['memory_gib']} GiB; {m['system']}, Linux {m['kernel']}, "
        f"Python {m['python']}; load average before the run {m['load']}.",
        f"- {s['images']} images of {s['image_bytes'] / max(1, s['images']) / 1000:.0f} kB on "
        f"average ({s['image_source']}); {s['records']} records.",
        f"- {s['rounds']} rounds. In each round every loader runs once, in its own process, for "
        f"{s['seconds']:g} s after {s['warm']:g} s of warm-up. All run on the same cores and read from "
        "the page cache. penstock has no warm-up: its clock starts with its threads.",
        ""]


def version_lines(results):
    """Return one line for each environment, with the versions of its packages."""
    versions = {}
    for row in rows.ROWS:
        found = results.found.get(row.name, {}).get("versions")
        if found:
            versions.setdefault(row.environment, {}).update(found)
    return ["## Versions", "",
            *[f"- {', '.join(f'{name} {version}' for name, version in sorted(found.items()))}"
              for found in versions.values()], ""]


def write(given):
    results = Results(given)
    lines = ["<!-- SPDX-License-Identifier: Apache-2.0 -->",
             "<!-- Written by `benchmarks/peers/run report`; do not edit. -->",
             "# penstock compared with other loaders", "", *machine_lines(results), *aim_lines(results)]
    for name in rows.TABLES:
        lines += table_lines(results, name)
    return "\n".join(lines + version_lines(results)).rstrip() + "\n"
