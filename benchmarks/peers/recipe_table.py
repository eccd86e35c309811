# SPDX-License-Identifier: Apache-2.0
"""The section of RESULTS.md on whole recipes, from the JSON that benchmarks/bench_recipes.py --save writes."""
import re
import statistics

from results import figure, line, spread

TITLE = "## Whole recipes"
OURS = "penstock"


def rates_of(given, recipe):
    """By library: the rates of all rounds, or why there are none."""
    return {row["library"]: row.get("rates") or row["why_not"] for row in given["rows"] if row["recipe"] == recipe}


def ratio_of(found, library):
    """Return median, least and most of penstock's rate divided by the library's, within each round."""
    return spread([a / b for a, b in zip(found[OURS], found[library])])


def library_line(found, recipe, library):
    rates = found[library]
    title = f"**{library}**" if library == OURS else library
    if isinstance(rates, str):
        return line(recipe, title, f"({rates})", "", "")
    median, least, most = spread(rates)
    ratio = ratio_of(found, library) if library != OURS else None
    return line(recipe, title, figure(median), f"{figure(least)} .. {figure(most)}",
                f"{ratio[0]:.1f} ({ratio[1]:.1f} .. {ratio[2]:.1f})" if ratio else "")


def recipe_lines(given, recipe):
    found = rates_of(given, recipe)
    order = sorted(found, key=lambda name: -statistics.median(found[name]) if isinstance(found[name], list) else 0)
    return [library_line(found, recipe, library) for library in order]


def best_line(given, recipe):
    """Return the ratio to the best peer, and whether it meets the aim."""
    found = rates_of(given, recipe)
    peers = [name for name, rates in found.items() if name != OURS and isinstance(rates, list)]
    if not peers or isinstance(found[OURS], str):
        return line(recipe, "(no peer)", "", "")
    best = max(peers, key=lambda name: statistics.median(found[name]))
    ratio = ratio_of(found, best)
    return line(recipe, best, f"{ratio[0]:.1f} ({ratio[1]:.1f} .. {ratio[2]:.1f})", "yes" if ratio[0] >= 5 else "no")


def section(given):
    """Return the lines of the section."""
    m, s = given["machine"], given["settings"]
    recipes = list(dict.fromkeys(row["recipe"] for row in given["rows"]))
    versions = ", ".join(f"{name} {version}" for name, version in sorted(given["versions"].items()))
    return [
        TITLE, "",
        f"- {m['date']}; {m['cpu']} ({', '.join(m['vectors']) or 'no AVX2'}), {s['workers']} workers on {m['cores']} "
        f"cores; load average before the run {m['load']}, after it {s['load_after']}"
        + ("; other programs ran on the same cores: neither the rates nor "
           "the ratios, which differ by rounds, are those of a quiet machine." if m["load"] > 1 else "."),
        f"- {s['images']} images; batches of {s['batch']}, float32, channels first, normalised; {s['rounds']} rounds of "
        f"{s['seconds']:g} s for each library, after an epoch of warm-up; by `benchmarks/bench_recipes.py --peers`.",
        f"- {versions}.", "",
        line("recipe", "best peer", "penstock / best peer: median (least .. most)", ">= 5"), "|---|---|---|---|",
        *[best_line(given, recipe) for recipe in recipes], "",
        line("recipe", "library", "images/s, median", "least .. most", "penstock / library"), "|---|---|---|---|---|",
        *[text for recipe in recipes for text in recipe_lines(given, recipe)], ""]


def with_section(text, given):
    """Return a page with this section in the place of the one that it has, or before its versions."""
    text = re.sub(rf"{TITLE}\n.*?(?=^## |\Z)", "", text, flags=re.S | re.M)
    head, versions, rest = text.partition("## Versions\n")
    return head + "\n".join(section(given)) + "\n" + versions + rest
