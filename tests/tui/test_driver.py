"""What is printed while the screen belongs to the app."""

import os
import sys
import textwrap
from pathlib import Path
from subprocess import run

ROOT = Path(__file__).parents[2]


def run_python(code, *arguments):
    command = [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)]
    return run(command, capture_output=True, text=True, cwd=ROOT, check=True)


def test_output_goes_to_the_log_from_the_first_line_and_comes_back(tmp_path):
    result = run_python(
        """
        import os, pathlib, sys
        from tui.driver import StreamRedirect
        print("before")
        redirect = StreamRedirect()
        print("python, no log yet", flush=True)
        os.write(2, b"descriptor, no log yet\\n")
        redirect.to(pathlib.Path(sys.argv[1]))
        os.write(1, b"descriptor, log\\n")
        os.system("echo child, log")
        assert redirect.restore() == b""
        print("after")
        """,
        tmp_path / "log.txt",
    )
    assert result.stdout == "before\nafter\n"
    assert result.stderr == ""
    assert (tmp_path / "log.txt").read_text().splitlines() == [
        "python, no log yet",
        "descriptor, no log yet",
        "descriptor, log",
        "child, log",
    ]


def test_output_without_a_log_is_given_back(tmp_path):
    result = run_python(
        """
        import os, sys
        from tui.driver import StreamRedirect
        redirect = StreamRedirect()
        os.write(2, b"caught")
        sys.stdout.write(repr(redirect.restore()))
        """
    )
    assert result.stdout == "b'caught'"
    assert result.stderr == ""


def test_whoever_reads_meanwhile_finds_the_end_of_a_file():
    result = run(
        [
            sys.executable,
            "-c",
            "import sys; from tui.driver import StreamRedirect\n"
            "redirect = StreamRedirect(); inside = sys.stdin.buffer.raw.read(5)\n"
            "redirect.restore(); print(inside, sys.stdin.buffer.raw.read(4))",
        ],
        input="keys",
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=True,
    )
    assert result.stdout == "b'' b'keys'\n"


def test_a_log_that_cannot_be_written_ends_nothing(tmp_path):
    result = run_python(
        """
        import os, pathlib, sys
        from tui.driver import StreamRedirect
        redirect = StreamRedirect()
        os.write(2, b"caught")
        redirect.to(pathlib.Path(sys.argv[1]))
        os.write(2, b" all the same")
        sys.stdout.write(repr(redirect.restore()))
        """,
        tmp_path / "gone/log.txt",
    )
    assert result.stdout == "b'caught all the same'"


def test_a_terminal_that_is_gone_swallows_what_it_gets():
    from tui.driver import TerminalFile

    read_end, write_end = os.pipe()
    os.close(read_end)
    TerminalFile(write_end).write("nobody reads this" * 10_000)
    os.close(write_end)
