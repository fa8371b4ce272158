import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopctl.judges.runs import runs

# The command, and a file that it runs.
RUN = [
    ("sh check.sh", "check.sh"),
    ("sh ./check.sh", "check.sh"),
    ("./check.sh", "check.sh"),
    ("tools/check --fast", "tools/check"),
    ("bash -eu tools/check.sh x", "tools/check.sh"),
    ("bash -o pipefail check.sh", "check.sh"),
    ("bash --norc check.sh", "check.sh"),
    ("sh -c 'sh check.sh'", "check.sh"),
    ('bash -ec "set -u; ./check.sh && true"', "check.sh"),
    (". ./check.sh", "check.sh"),
    ("source tools/env.sh && true", "tools/env.sh"),
    ("$PWD/check.sh", "check.sh"),
    ('"$(pwd)/check.sh"', "check.sh"),
    ("sh < check.sh", "check.sh"),
    ("sh <check.sh", "check.sh"),
    ("cat check.sh | sh", "check.sh"),
    ('eval "$(cat check.sh)"', "check.sh"),
    ('test "$(sh check.sh)" = ok', "check.sh"),
    ("test `sh check.sh` = ok", "check.sh"),
    ("cd tools && sh check.sh", "tools/check.sh"),
    ("cd tools; ./check.sh", "tools/check.sh"),
    ("true || sh check.sh", "check.sh"),
    ("if ! sh check.sh; then exit 1; fi", "check.sh"),
    ("while sh check.sh; do :; done", "check.sh"),
    ("CI=1 timeout 10 env A=b sh check.sh", "check.sh"),
    ("find . -name x | xargs sh check.sh", "check.sh"),
    ("python check.py", "check.py"),
    ("python3.12 -W error -I check.py --all", "check.py"),
    ("python tools/check", "tools/check/__main__.py"),
    ("python - < check.py", "check.py"),
    ("cat check.py | python3", "check.py"),
    ("uv run check.py", "check.py"),
    ("uv run --with x python check.py", "check.py"),
    ("poetry run ./check", "check"),
    ("node check.mjs", "check.mjs"),
    ("node -r ./hook.js check.js", "hook.js"),
    ("node --test checks/a.js checks/b.js", "checks/b.js"),
    ("npx tsx check.ts", "check.ts"),
    ("deno run -A check.ts", "check.ts"),
    ("ruby -Ilib check.rb", "check.rb"),
    ("perl check.pl", "check.pl"),
    ("awk -f check.awk data", "check.awk"),
    ("go run tools/check.go", "tools/check.go"),
    ("make -f ci.mk test", "ci.mk"),
    ("make --makefile=ci.mk", "ci.mk"),
    ("just --justfile ci.just", "ci.just"),
    ("pytest -q checks/test_a.py::test_b", "checks/test_a.py"),
    ("python -m pytest checks/test_a.py", "checks/test_a.py"),
    ("python -m unittest checks.test_a.Case", "checks/test_a.py"),
    ("bats checks/all.bats", "checks/all.bats"),
]


@pytest.mark.parametrize(("command", "path"), RUN)
def test_what_a_command_runs_is_found(command: str, path: str) -> None:
    found = runs(command)
    assert found.is_run(path, lambda _: True)
    assert not found.is_run(path, lambda _: False)


@pytest.mark.parametrize(
    ("command", "path"),
    [
        ("grep -q import README.md", "README.md"),
        ("test -s LICENSE", "LICENSE"),
        ("python check.py README.md", "README.md"),
        ("sh check.sh src/app.sh", "src/app.sh"),
        ("node check.js data.json", "data.json"),
        ("ruff check src/app.py", "src/app.py"),
        ("python -m ruff check src/app.py", "src/app.py"),
        ("uv run ruff check src/app.py", "src/app.py"),
        ("pytest --doctest-modules src/app.py", "src/app.py"),
        ("python -c 'import app' app.py", "app.py"),
        ("sh -c 'grep x README.md'", "README.md"),
        ("diff expected.txt out.txt", "expected.txt"),
        ("cat notes.txt | grep x", "notes.txt"),
        ("make test", "src/make.py"),
        ("go vet ./...", "vet"),
        ("sh 'unclosed", "unclosed"),
        ("/usr/bin/check", "usr/bin/check"),
        ("../check.sh", "check.sh"),
        ("", "check.sh"),
    ],
)
def test_what_a_command_only_reads_is_not_what_it_runs(command: str, path: str) -> None:
    assert not runs(command).is_run(path, lambda _: True)


@pytest.mark.parametrize(
    ("command", "there", "new"),
    [
        ("make test", "Makefile", "GNUmakefile"),
        ("gmake -j4 -C sub", "sub/Makefile", "sub/makefile"),
        ("cd sub && make", "sub/Makefile", "sub/GNUmakefile"),
        ("just check", "justfile", ".justfile"),
        ("task check", "Taskfile.yml", "taskfile.yaml"),
        ("rake", "Rakefile", "rakefile"),
        ("inv check", "tasks.py", "tasks/__init__.py"),
        ("python -m checks.run", "checks/run.py", "checks/run/__main__.py"),
    ],
)
def test_files_of_rules_cannot_be_replaced_by_one_that_comes_first(
    command: str, there: str, new: str
) -> None:
    found = runs(command)
    for path in (there, new):
        assert found.is_run(path, lambda other: other == there)
        assert not found.is_run(path, lambda _: False)


@pytest.mark.parametrize(
    ("command", "script"),
    [
        ("npm test", "test"),
        ("npm run verify", "verify"),
        ("npm run verify", "preverify"),
        ("npm --prefix web run e2e", "e2e"),
        ("yarn build", "build"),
        ("pnpm run ci -- --fast", "ci"),
    ],
)
def test_scripts_of_a_package_are_found(command: str, script: str) -> None:
    assert script in runs(command).scripts


@given(st.text())
def test_no_command_breaks_the_reader(command: str) -> None:
    runs(command)


WORDS = [
    "sh",
    "-c",
    "'",
    '"',
    "$(",
    ")",
    "python",
    "-m",
    "make",
    "cd",
    "eval",
    "`",
    "npm",
    "x",
    "uv",
    "run",
    "xargs",
    "<",
    "|",
    ";",
    "-f",
    "env",
    "bash",
    "node",
    "-",
    ".",
    "{",
]


@given(st.lists(st.sampled_from(WORDS)))
def test_no_words_break_the_reader(words: list[str]) -> None:
    runs(" ".join(words))
