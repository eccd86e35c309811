#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""--help, the man page and the completions of bash, zsh and fish list the options that the parser takes.
usage: test_pages.py PENSTOCK MAKE_IMAGES [WORD]; TAP, as test_command.py.

The pages lie next to the command, in pages/. What a shell or groff would check is skipped where it is not
installed; their lists are compared all the same.
"""
import os
import re
import shlex
import shutil
import subprocess
import sys

from test_command import COMMANDS, PENSTOCK, Skip, expect, main, run, run_json

PAGES = os.path.join(os.path.dirname(PENSTOCK), "pages")
TESTS = []


def test(function):
    TESTS.append(function)
    return function


def page(name):
    with open(os.path.join(PAGES, name), encoding="utf-8") as f:
        return f.read()


def options_of(command):
    """{option: its value as --help calls it, or None} of a command's --help."""
    rows = re.findall(r"^  (?:-\w, )?--([\w-]+)(?: (\S+))?(?:  .*)?$", run(command, "--help")[0], re.M)
    return {name: value or None for name, value in rows}


def words_of(value):
    """Of a value such as host|cuda|cuda:N the words that can be typed as they are."""
    words = value.split("|") if value and "|" in value else []
    return [word for word in words if not re.search("[A-Z]", word)]


def complete(*words, cwd=None):
    """What bash offers for the last word."""
    script = ('source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _penstock\n'
              'printf "%s\\n" "${COMPREPLY[@]}"')
    done = subprocess.run(["bash", "--norc", "-c", script, "bash", os.path.join(PAGES, "penstock"), *words],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=cwd, timeout=120, check=True)
    expect(done.stderr, b"", words)
    return done.stdout.decode().split()


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
            if not words_of(value) or (command, name) == ("export", "to"):  # which must be given
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
            expected = sorted(os.listdir(world.root)) if value == "FILE" else words_of(value)
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
    script = ('source "$1"; COMP_WORDS=(penstock info a); COMP_CWORD=2; _penstock\n'
              'printf "%s\\n" "${COMPREPLY[@]}"')
    done = subprocess.run(["bash", "--norc", "-c", script, "bash", os.path.join(PAGES, "penstock")],
                          stdout=subprocess.PIPE, cwd=folder, timeout=120, check=True)
    expect(sorted(done.stdout.decode().splitlines()), ["a data set", "another"])


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

@test
def zsh_is_given_every_option_and_value(world):
    text = page("_penstock")
    assert text.startswith("#compdef penstock\n")
    cases = dict(re.findall(r"^(\w+)\)\n    _arguments \\\n(.*?)^    ;;$", text, re.M | re.S))
    expect(list(cases), COMMANDS)
    for command, case in cases.items():
        found, operands = {}, []
        for line in case.strip("\n").split("\n"):
            words = shlex.split(line.rstrip("\\"))  # a quote left open is an error
            expect(len(words), 1, line)
            spec = words[0].replace("\\:", "\0")
            match = re.fullmatch(r"(?:\(-\w --[\w-]+\)\{-\w\+?,)?--([\w-]+)(=?)\}?\[(?:[^\]\\]|\\.)+\]"
                                 r"(?::[^:]+:(?:\(([\w ]+)\)|_files| ))?", spec)
            if re.match(r"[*\d]:", spec):
                operands.append(spec.rpartition(":")[2])
                continue
            assert match, line
            expect(bool(match[2]), spec.count(":") == 2, line)
            found[match[1]] = (bool(match[2]), (match[3] or "").split())
        del found["help"]
        expect(found, {name: (value is not None, words_of(value))
                       for name, value in options_of(command).items()}, command)
        expect(operands, {"get": ["_files -/", " ", "_penstock_fields"], "column": ["_files -/", " ", "_files"],
                          "doctor": ["_files"], "page": ["_files"], "top": []}.get(command, ["_files -/"]), command)


@test
def fish_is_given_every_option_and_value(world):
    found = {command: {} for command in COMMANDS}
    offered = []
    text = re.sub("^function .*?^end\n", "", page("penstock.fish"), flags=re.M | re.S)
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        words = shlex.split(line.replace("\\'", "'\"'\"'"))
        expect(words[:3], ["complete", "-c", "penstock"], line)
        given = {words[i]: words[i + 1] for i in range(3, len(words) - 1) if words[i] in ("-n", "-a", "-l", "-d")}
        subcommand = given.get("-n", "").removeprefix("__fish_seen_subcommand_from ")
        if given.get("-n") == "__fish_use_subcommand":
            offered += [given["-a"]] if "-a" in given else []
        elif "-l" in given:
            found[subcommand][given["-l"]] = ("-x" in words or "-r" in words, given.get("-a", "").split())
    expect(sorted(offered), sorted(COMMANDS + ["help"]))
    expect(found, {command: {name: (value is not None, words_of(value))
                             for name, value in options_of(command).items()} for command in COMMANDS})
    assert "'__fish_seen_subcommand_from doctor' -F\n" in text
    places = re.findall(r"_from get; and test \(count \(commandline -opc\)\) -eq (\d)' -a '\((\w+)\)'$", text, re.M)
    expect(places, [("2", "__fish_complete_directories"), ("4", "__penstock_fields")])


def offered_by_fish(world, line, **kwargs):
    """What fish offers for the last word of a line."""
    folder = world.path("fish")
    script = "source %s; complete -C %s" % (shlex.quote(os.path.join(PAGES, "penstock.fish")), shlex.quote(line))
    done = subprocess.run(["fish", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env={**os.environ, "HOME": folder, "XDG_CONFIG_HOME": folder, "XDG_DATA_HOME": folder,
                               "PATH": os.path.dirname(PENSTOCK) + ":" + os.environ["PATH"]}, timeout=120, **kwargs)
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


@test
def zsh_can_read_its_completion(world):
    if not shutil.which("zsh"):
        raise Skip("zsh is not installed")
    subprocess.run(["zsh", "-n", os.path.join(PAGES, "_penstock")], timeout=120, check=True)


@test
def fish_can_read_its_completion(world):
    if not shutil.which("fish"):
        raise Skip("fish is not installed")
    subprocess.run(["fish", "--no-execute", os.path.join(PAGES, "penstock.fish")], timeout=120, check=True)


if __name__ == "__main__":
    sys.exit(main(TESTS))
