#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""--help, the man page and the completions of bash, zsh and fish list the options that the parser takes.
usage: test_pages.py PENSTOCK MAKE_IMAGES [WORD]; TAP, as test_command.py.

The man page lies next to the command, in pages/. The shells' completions call `penstock --complete`, whose lists are
compared. What a shell or groff would check is skipped where it is not installed.
"""
import os
import random
import re
import shlex
import shutil
import subprocess
import sys

from test_command import COMMANDS, PENSTOCK, Skip, expect, main, run, run_json

PAGES = os.path.join(os.path.dirname(PENSTOCK), "pages")
STUBS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../src/cli/pages")
PATH = os.path.dirname(PENSTOCK) + ":" + os.environ["PATH"]
TESTS = []


def test(function):
    TESTS.append(function)
    return function


def page(name):
    with open(os.path.join(PAGES, name), encoding="utf-8") as f:
        return f.read()


def options_of(command):
    """Return {option: its value as --help calls it, or None} of a command's --help."""
    rows = re.findall(r"^  (?:-\w, )?--([\w-]+)(?: (\S+))?(?:  .*)?$", run(command, "--help")[0], re.M)
    return {name: value or None for name, value in rows}


def words_of(value):
    """Return the words that can be typed as they are, from a value such as host|cuda|cuda:N."""
    words = value.split("|") if value and "|" in value else []
    return [word for word in words if not re.search("[A-Z]", word)]


def complete_lines(*words, cwd=None):
    """Return the words that bash offers for the last word."""
    script = ('source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _penstock\n'
              'printf "%s\\n" "${COMPREPLY[@]}"')
    done = subprocess.run(["bash", "--norc", "-c", script, "bash", os.path.join(STUBS, "penstock.bash"), *words],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=cwd, timeout=120, check=True,
                          env={**os.environ, "PATH": PATH})
    expect(done.stderr, b"", words)
    return done.stdout.decode().splitlines()


def complete(*words, cwd=None):
    return " ".join(complete_lines(*words, cwd=cwd)).split()


def candidates(*words):
    """Return the output of `penstock --complete`: [(candidate, help or "")]."""
    out, err = run("--complete", *words)
    expect(err, "", words)
    return [tuple((line + "\t").split("\t")[:2]) for line in out.splitlines()]


def names(*words):
    return [name for name, _ in candidates(*words)]


# ---- the parser ---------------------------------------------------------------------------------

@test
def the_parser_takes_what_help_lists_and_no_other_value(world):
    for command in COMMANDS:
        options = options_of(command)
        assert options or command == "get", command
        wrong = {"cache": ["x", "y"], "doctor": ["x", "y"], "top": ["x"]}.get(command, [])  # they need no operand, and take one or none
        for name, value in options.items():
            _, err = run(command, "--" + name, *([] if value is None else ["--" + name]), *wrong, status=2)
            assert "no option" not in err, err
            for word in words_of(value):
                _, err = run(command, "--%s=%s" % (name, word), *wrong, status=2)
                assert "needs" in err or "takes" in err, (command, name, word, err)
            if words_of(value):
                _, err = run(command, "--%s=nonsense" % name, status=2)
                listed = err.rstrip("\n").rpartition("must be ")[2]
                for word in words_of(value):
                    assert re.search(r"\b%s\b" % word, listed), (command, name, word, err)
            elif value is None and name != "help":
                _, err = run(command, "--%s=1" % name, status=2)
                assert "takes no value" in err, err


@test
def defaults_that_help_prints_are_values(world):
    for command in COMMANDS:
        text = " ".join(run(command, "--help")[0].split())
        for name, value in options_of(command).items():
            if not words_of(value) or (command, name) == ("export", "to"):  # --to of export must be given
                continue
            initial = re.search(r"--%s [^-]\S* .*?\(default: (\w+)\)" % name, text)
            assert initial and initial[1] in words_of(value), (command, name)


# ---- the man page -------------------------------------------------------------------------------

def plain(roff):
    return re.sub(r"\\f[BIR]", "", roff).replace("\\-", "-").replace("\\e", "\\").replace("\\&", "")


@test
def the_man_page_has_every_option_and_nothing_else(world):
    sections = re.split(r"^\.S[SH] ", plain(page("penstock.1")), flags=re.M)
    found = {section.split()[1]: section for section in sections if section.startswith("penstock ")}
    expect(list(found), COMMANDS)
    for command, section in found.items():
        rows = re.findall(r"^\.TP\n(?:-\w, )?--([\w-]+)(?: (\S+))?$", section, re.M)
        expect({name: value or None for name, value in rows}, options_of(command), command)
        usage = run(command, "--help")[0].split("\n")[0].removeprefix("usage: ")
        expect(section.split("\n")[0], usage)
    version = run("--version")[0].strip()
    assert '"%s"' % version in page("penstock.1").split("\n")[1]


@test
def groff_has_no_warning_about_the_man_page(world):
    if not shutil.which("groff"):
        raise Skip("groff is not installed")
    done = subprocess.run(["groff", "-man", "-ww", "-Tascii", os.path.join(PAGES, "penstock.1")],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120, check=True)
    expect(done.stderr, b"")
    text = re.sub(rb"\x1b\[\d*m|.\x08", b"", done.stdout).decode()
    assert "printed as \\x1b" in text and "| jq '.devices[0]" in text, text


# ---- --complete ---------------------------------------------------------------------------------

@test
def commands_and_options_have_their_help(world):
    expect(names(""), COMMANDS + ["help", "--help", "--version"])
    expect(candidates("ve"), [("verify", "read and check everything")])
    expect(names("help", ""), COMMANDS)
    for command in COMMANDS:
        found = candidates(command, "--")
        expect([name for name, _ in found], ["--help", *("--" + name for name in options_of(command))], command)
        assert all(text for _, text in found), found
    letters = [name for name in names("show", "-") if len(name) == 2]
    assert "-h" in letters and "-o" in letters, letters


@test
def values_are_completed_in_each_way_to_write_them(world):
    expect(names("bench", "d", "--layout", "nc"), ["nchw"])
    expect(names("bench", "d", "--layout=nc"), ["--layout=nchw"])
    expect(names("bench", "--layout="), ["--layout=nhwc", "--layout=nchw"])
    expect(names("bench", "d", "--layout", "=", "nc"), ["nchw"])  # as bash cuts it
    expect(names("bench", "d", "--layout", "="), ["nhwc", "nchw"])
    for word in ("--report", "--trace"):
        expect(names("bench", word, "x"), [":file"])
        expect(names("bench", word + "=x"), [":file"])
    expect(names("top", "--folder", ""), [":directory"])
    expect(names("show", "-o", ""), [":file"])


@test
def no_option_is_offered_after_two_dashes(world):
    expect(names("verify", "--", "-"), [":directory"])
    expect(names("get", world.data, "3", "--", "j"), ["jpg"])
    assert "--json" in names("bench", "--report", "--", "--"), "the value of an option is no end of the options"


@test
def operands_are_counted_without_options(world):
    expect(names("column", "--overwrite", "d", "name", ""), [":file"])
    expect(names("get", "--by-content", world.data, "3", "j"), ["jpg"])
    expect(names("merge", "a", "b", "c", ""), [":directory"])
    expect(names("verify", "d", ""), [])
    expect(names("export", world.data, "out", "--image=j"), ["--image=jpg"])


@test
def words_that_make_no_sense_have_no_candidates(world):
    rng = random.Random(3)
    expect(names(), [])
    for words in (["nonsense", "--"], ["---"], ["=", ":"], ["help", "help", ""], ["get", "/dev/null", "3", ""],
                  ["bench", "--layout", "--layout", "d", "--nonsense=", "x"], ["bench", "-" + "x" * 100000], ["x"] * 5000):
        expect(names(*words), [], words[:4])
    for _ in range(50):
        words = ["".join(rng.choice("\x01\x7f\n\t%:=\\'$~\u00e4") for _ in range(9)) for _ in range(rng.randrange(1, 5))]
        expect(names("bench", "-" + words[0], "d", *words)[:1] in ([], [":directory"]), True, words)


# ---- bash ---------------------------------------------------------------------------------------

@test
def bash_completes_commands_options_and_values(world):
    expect(complete("penstock", ""), COMMANDS + ["help", "--help", "--version"])
    expect(complete("penstock", "ve"), ["verify"])
    expect(complete("penstock", "help", ""), COMMANDS)
    for command in COMMANDS:
        options = options_of(command)
        expect(complete("penstock", command, "--"), ["--help", *("--" + name for name in options)], command)
        for name, value in options.items():
            if value is None:
                continue
            expected = words_of(value)
            if value in ("FILE", "DIR"):
                expected = sorted(name for name in os.listdir(world.root)
                                  if value == "FILE" or os.path.isdir(world.path(name)))
            expect(sorted(complete("penstock", command, "--" + name, "", cwd=world.root)), sorted(expected),
                   (command, name))
    expect(complete("penstock", "bench", "d", "--layout", "nc"), ["nchw"])
    expect(complete("penstock", "bench", "d", "--layout", "=", "nc"), ["nchw"])
    expect(complete("penstock", "bench", "d", "--layout", "="), ["nhwc", "nchw"])
    expect(complete("penstock", "nonsense", "--"), [])


@test
def bash_completes_folders(world):
    folder = world.fresh("completed")
    os.makedirs(os.path.join(folder, "a data set"))
    os.makedirs(os.path.join(folder, "another"))
    with open(os.path.join(folder, "a file"), "w"):
        pass
    expect(sorted(complete_lines("penstock", "info", "a", cwd=folder)), ["a data set", "another"])


@test
def bash_completes_what_an_operand_is(world):
    folder = world.fresh("operands")
    os.makedirs(os.path.join(folder, "folder"))
    with open(os.path.join(folder, "file"), "w"):
        pass
    for command in COMMANDS:
        expected = {"doctor": ["file", "folder"], "page": ["file", "folder"], "top": []}.get(command, ["folder"])
        expect(sorted(complete("penstock", command, "f", cwd=folder)), expected, command)
    fields = [field["name"] for field in run_json("info", world.data)["fields"]]
    expect(complete(PENSTOCK, "get", world.data, ""), [])
    expect(complete(PENSTOCK, "get", world.data, "3", ""), fields)
    expect(complete(PENSTOCK, "get", world.data, "3", "j"), ["jpg"])
    expect(complete(PENSTOCK, "get", folder, "3", ""), [])


# ---- zsh and fish -------------------------------------------------------------------------------

def offered_by_fish(world, line, **kwargs):
    """Return the words that fish offers for the last word of a line."""
    folder = world.path("fish")
    script = "source %s; complete -C %s" % (shlex.quote(os.path.join(STUBS, "penstock.fish")), shlex.quote(line))
    done = subprocess.run(["fish", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env={**os.environ, "HOME": folder, "XDG_CONFIG_HOME": folder, "XDG_DATA_HOME": folder,
                               "PATH": PATH}, timeout=120, **kwargs)
    expect(done.stderr, "")
    return [offer.split("\t")[0] for offer in done.stdout.splitlines()]


@test
def fish_completes_what_an_operand_is(world):
    if not shutil.which("fish"):
        raise Skip("fish is not installed")
    folder = world.fresh("operands")
    os.makedirs(os.path.join(folder, "folder"))
    with open(os.path.join(folder, "file"), "w"):
        pass
    expect(offered_by_fish(world, "penstock verify f", cwd=folder), ["folder/"])
    expect(sorted(offered_by_fish(world, "penstock doctor f", cwd=folder)), ["file", "folder/"])
    expect(offered_by_fish(world, "penstock get f", cwd=folder), ["folder/"])
    fields = [field["name"] for field in run_json("info", world.data)["fields"]]
    expect(offered_by_fish(world, "penstock get %s " % world.data), [])
    expect(sorted(offered_by_fish(world, "penstock get %s 3 " % world.data)), sorted(fields))
    expect(offered_by_fish(world, "penstock bench d --layout=nc"), ["--layout=nchw"])
    expect(offered_by_fish(world, "penstock bench d --report=fi", cwd=folder), ["--report=file"])
    expect(offered_by_fish(world, "penstock ve"), ["verify"])


@test
def zsh_can_read_its_completion(world):
    if not shutil.which("zsh"):
        raise Skip("zsh is not installed")
    subprocess.run(["zsh", "-n", os.path.join(STUBS, "penstock.zsh")], timeout=120, check=True)


@test
def fish_can_read_its_completion(world):
    if not shutil.which("fish"):
        raise Skip("fish is not installed")
    subprocess.run(["fish", "--no-execute", os.path.join(STUBS, "penstock.fish")], timeout=120, check=True)


if __name__ == "__main__":
    sys.exit(main(TESTS))
