/* SPDX-License-Identifier: Apache-2.0 */
/*
 * complete: `penstock --complete WORD...`, which the shells' completions call. It prints the
 * candidates for the last word; main.c calls it.
 */
#ifndef PSTK_CLI_COMPLETE_H
#define PSTK_CLI_COMPLETE_H

/*
 * Print the candidates for the last of the words that follow the command's name, a line each. A tab
 * and one line of help may follow a candidate. The lines ":file" and ":directory" ask the shell for
 * the names of files and of folders. A candidate replaces the last word. Bash cuts words at = and
 * : , so it may pass "--layout", "=", "nc". Words that make no sense have no candidates. Returns an
 * exit status.
 */
int complete(int n_words, char **words);

#endif
