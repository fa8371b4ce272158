import multiprocessing
import sqlite3
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopctl.context.indexable import FILE_BYTES
from loopctl.context.passages import PASSAGE_BYTES
from loopctl.contextports import Document, Passage
from loopctl.domain import Axis, DecisionKind
from loopctl.errors import StoreError
from loopctl.events import (
    AnyEvent,
    DecisionAnswered,
    DecisionRaised,
    TaskClaimed,
    TaskStopped,
    TodoClosed,
)
from loopctl.store.eventlog import JsonLinesEventLog
from loopctl.store.memories import SqliteMemories
from loopctl.testing import StillClock
from loopctl.testing.context import ScriptedOracle

Open = Callable[..., Any]

QUERIES = {
    "Put an item into the shopping cart": "shop/cart.py",
    "amounts with a decimal comma": "shop/money.py",
    "the password of a user is checked wrongly": "shop/login.py",
    "invoices are sent twice by SMTP": "shop/mailer.py",
    "an empty CSV header names no columns": "shop/reader.py",
    "evicting what was least recently used": "shop/cache.py",
    "time zones: timestamps not in UTC": "shop/dates.py",
    "ranking by document frequency": "shop/search.py",
    "map the checkout URL to its view": "web/router.py",
    "visitors stay logged in for longer than an hour": "web/session.py",
    "how do I deploy the container image?": "docs/deploy.md",
    "naming of functions, indentation": "docs/style.md",
    "router": "web/router.py",
    "EvictingCache.limit": "shop/cache.py",
}


def test_file_that_is_meant_comes_first(bench: Open) -> None:
    one = bench()
    assert {query: one.sources(query)[0] for query in QUERIES} == QUERIES


def test_memory_has_the_words_of_the_file_and_scores_fall(bench: Open) -> None:
    found = bench().recaller.recall("parse the amount, rank documents", 3)
    assert {one.source for one in found[:2]} == {"shop/money.py", "shop/search.py"}
    money = next(one for one in found if one.source == "shop/money.py")
    assert "def parse_amount(text):" in money.text
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)


def test_nothing_is_recalled_where_nothing_fits(bench: Open) -> None:
    one = bench()
    queries = ["", "  ", "the of and", "?!", "zebra xylophone"]
    assert [one.sources(query) for query in queries] == [[]] * len(queries)


def test_no_more_is_recalled_than_was_asked_for(bench: Open) -> None:
    one, query = bench(), "the user's cart, password, cookie and items"
    assert [len(one.sources(query, limit)) for limit in (-1, 0, 1, 2)] == [0, 0, 1, 2]


ODD_QUERIES = (
    '"unbalanced cart',
    "cart NEAR(",
    "cart AND OR NOT *",
    "text: cart -cart ^cart {cart}",
    "cart' OR 1=1; DROP TABLE passages; --",
    "cart\0cart",
    "cart " * 5000,
    "\ud800 cart",
)


def test_query_is_words_whatever_it_looks_like(bench: Open) -> None:
    one = bench()
    assert [one.sources(query)[0] for query in ODD_QUERIES] == ["shop/cart.py"] * len(ODD_QUERIES)


def test_terms_that_are_syntax_are_terms_for_the_index_itself(tmp_path: Path) -> None:
    index = SqliteMemories(tmp_path)
    index.replace([Document("file:a", "1", (Passage("a", 'say "hello" AND go'),))])

    @settings(max_examples=200, deadline=None)
    @given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), max_size=5))
    def never_raises(terms: list[str]) -> None:
        index.search(terms, 3)

    never_raises()
    assert index.search(['"hello" AND', "NEAR("], 3) == (Passage("a", 'say "hello" AND go'),)
    index.close()


def test_only_what_has_changed_is_read_again(bench: Open, checkout: Any) -> None:
    first = bench()
    first.sources("cart")
    assert len(first.repository.read) == 13
    first.sources("password")
    assert len(first.repository.read) == 13
    first.index.close()
    checkout.commit({"shop/login.py": "def check_pincode(user):\n    return True\n"})
    checkout.git("rm", "-q", "shop/cart.py")
    checkout.git("commit", "-q", "-m", "gone")
    later = bench()
    assert later.sources("pincode") == ["shop/login.py"]
    assert len(later.repository.read) == 1
    assert later.sources("password", 5) == []
    assert "shop/cart.py" not in later.sources("shopping cart item")


def test_tree_that_moves_while_a_run_goes_on_is_followed(bench: Open, checkout: Any) -> None:
    one = bench()
    assert one.sources("teleporter") == []
    checkout.commit({"shop/teleporter.py": "def beam_up(): ...\n"})
    one.repository.owned.sync()
    assert one.sources("teleporter") == ["shop/teleporter.py"]


SECRETS = (
    *(".env", ".env.local", "deploy/prod.env", "certs/server.pem", "certs/server.key", ".npmrc"),
    *("home/.ssh/config", "id_rsa", "ops/id_ed25519.old", "credentials.json", "a/secrets.yaml"),
    *(".aws/config", "infra/main.tfvars", "app/client_secret.json", ".netrc", "ID_RSA", "x.P12"),
)


def test_secrets_never_reach_the_index(bench: Open, checkout: Any) -> None:
    checkout.commit(dict.fromkeys(SECRETS, "platypus = 'hunter2'\n"))
    checkout.commit({"notes.txt": "platypus\n-----BEGIN OPENSSH PRIVATE KEY-----\nhunter2\n"})
    checkout.commit({"shop/environment.py": "platypus = read()\n"})
    one = bench()
    assert one.sources("platypus hunter2 pem rsa env", 50) == ["shop/environment.py"]
    one.index.close()
    everything = b"".join(path.read_bytes() for path in checkout.local.glob("recall.db*"))
    assert b"platypus" in everything
    assert b"hunter2" not in everything


def test_what_is_no_prose_is_passed_over(bench: Open, checkout: Any) -> None:
    checkout.commit(
        {
            "image.bin": b"platypus \0\1\2",
            "huge.txt": "platypus\n" * (FILE_BYTES // 9 + 1),
            "poetry.lock": "platypus",
            "empty.txt": "",
            "latin.txt": b"platypus caf\xe9",
        }
    )
    (checkout.root / "link.txt").symlink_to("latin.txt")
    checkout.git("add", "link.txt")
    checkout.git("commit", "-q", "-m", "link")
    assert bench().sources("platypus", 20) == ["latin.txt"]


def test_excerpt_is_bounded_and_is_the_part_that_fits(bench: Open, checkout: Any) -> None:
    filler = "".join(f"line {number} says nothing at all\n" for number in range(2000))
    checkout.commit(
        {"long.txt": f"{filler}the platypus lives here\n{filler}", "wide.txt": "y" * 9999}
    )
    (memory,) = bench().recaller.recall("where the platypus lives", 1)
    assert "the platypus lives here" in memory.text
    assert len(memory.text.encode()) <= PASSAGE_BYTES


def _run(local: Path, run_id: str, *events: AnyEvent) -> None:
    log = JsonLinesEventLog(local / "runs" / run_id, run_id, StillClock())
    for event in events:
        log.append(event)
    log.close()


def _told(run_id: str, checkout: Any) -> None:
    _run(
        checkout.local,
        run_id,
        TaskClaimed(task="T7", title="Choose a provider", worker="graph"),
        DecisionRaised(task="T7", id="T7.1", kind=DecisionKind.SCOPE, question="Which wombat?"),
        DecisionAnswered(task="T7", id="T7.1", answer="the hairy-nosed one"),
        TodoClosed(task="T7", candidate="main", todo="feed it", summary="it eats eucalyptus"),
        TaskStopped(
            task="T7", axis=Axis.GOAL, reason="goal_met", steps=2, result="a quokka smiles"
        ),
    )


def test_earlier_runs_are_recalled_by_result_summary_and_decision(
    bench: Open, checkout: Any
) -> None:
    checkout.repository()
    _told("20260101T000000-aaaa", checkout)
    one = bench()
    for query in ("which wombat", "hairy nosed", "eucalyptus", "quokka", "choosing providers"):
        (memory,) = one.recaller.recall(query, 3)
        assert memory.source == "run 20260101T000000-aaaa, task T7"
        assert memory.text.startswith("Choose a provider\nAsked: Which wombat?\nAnswered: the h")


def test_run_that_is_driven_now_is_not_recalled_and_a_torn_one_is_as_far_as_it_goes(
    bench: Open, checkout: Any
) -> None:
    checkout.repository()
    _told("now", checkout)
    _told("before", checkout)
    events = checkout.local / "runs" / "before" / "events.jsonl"
    events.write_bytes(events.read_bytes() + b'{"type":"task_stopped","task":"T7", half')
    assert bench().sources("wombat") == ["run before, task T7"]
    assert bench(current="before").sources("wombat") == ["run now, task T7"]


def _meaning(text: str) -> tuple[float, ...]:
    """Return the vector of a model that knows one thing: that a basket is a cart."""
    words = text.lower()
    is_cart = "basket" in words or "cart" in words
    return (1.0, 0.0, 0.1) if is_cart else (0.0, 1.0, float("password" in words))


def test_meaning_finds_what_no_word_does_and_ranks_are_merged(bench: Open) -> None:
    assert bench().sources("basket") == []
    oracle = ScriptedOracle(vector=_meaning)
    one = bench(oracle=oracle, embed_model="m")
    assert one.sources("basket") == ["shop/cart.py"]
    assert one.sources("basket password", 2) == ["shop/cart.py", "shop/login.py"]


def test_texts_are_embedded_once_for_all_runs_and_queries_once_for_a_todo(
    bench: Open, checkout: Any
) -> None:
    oracle = ScriptedOracle(vector=_meaning)
    one = bench(oracle=oracle, embed_model="m")
    one.sources("basket")
    one.sources("basket")
    assert [len(texts) for texts in oracle.embedded] == [1, 13]
    one.index.close()
    checkout.commit({"shop/new.py": "basket = []\n"})
    later = bench(oracle=oracle, embed_model="m")
    assert later.sources("basket", 1) == ["shop/new.py"]
    assert [len(texts) for texts in oracle.embedded[2:]] == [1, 1]


def test_model_that_fails_leaves_full_text_and_is_not_asked_again(bench: Open) -> None:
    oracle = ScriptedOracle()
    one = bench(oracle=oracle, embed_model="m")
    assert [one.sources("cart")[0], one.sources("password")[0]] == ["shop/cart.py", "shop/login.py"]
    assert oracle.embedded == [("cart",)]


def test_one_recall_embeds_no_more_than_its_share(bench: Open, checkout: Any) -> None:
    checkout.commit({f"many/{number}.txt": f"thing {number}\n" for number in range(400)})
    oracle = ScriptedOracle(vector=_meaning)
    one = bench(oracle=oracle, embed_model="m")
    one.sources("basket")
    assert [len(texts) for texts in oracle.embedded] == [1, 64, 64, 64, 64]
    one.sources("basket")
    assert sum(len(texts) for texts in oracle.embedded) == 1 + 413


@pytest.mark.parametrize("where", ["head", "middle", "all", "text", "version"])
def test_index_that_is_damaged_is_made_again(bench: Open, checkout: Any, where: str) -> None:
    one = bench()
    one.sources("cart")
    one.index.close()
    path = checkout.local / "recall.db"
    content = bytearray(path.read_bytes())
    match where:
        case "head":
            content[:100] = b"x" * 100
        case "middle":
            content[4096 : len(content) // 2] = b"\xff" * (len(content) // 2 - 4096)
        case "all":
            content[:] = b"\0\1" * 5000
        case "text":
            content[:] = b"not a database at all"
        case _:
            with sqlite3.connect(path) as connection:
                connection.execute("PRAGMA user_version=99")
            connection.close()
            content[:] = path.read_bytes()
    path.write_bytes(content)
    later = bench()
    assert later.index.versions() == {}
    assert later.sources("cart")[0] == "shop/cart.py"
    assert later.notices == []
    later.index.close()
    again = bench()
    assert again.sources("cart")[0] == "shop/cart.py"
    assert again.repository.read == []


def test_index_that_breaks_under_a_run_is_made_again(bench: Open, checkout: Any) -> None:
    one = bench()
    one.sources("cart")
    with sqlite3.connect(checkout.local / "recall.db") as connection:
        connection.execute("DROP TABLE passages")
    connection.close()
    assert one.sources("password")[0] == "shop/login.py"
    assert one.notices == []


def test_damage_that_another_process_looks_on_leaves_its_file_alone(
    bench: Open, checkout: Any
) -> None:
    one, two = bench(), bench()
    one.sources("cart")
    two.sources("cart")
    before = (checkout.local / "recall.db").stat().st_ino
    two.index.reset()
    assert two.index.versions() == {}
    assert (checkout.local / "recall.db").stat().st_ino == before
    assert len(one.index.versions()) == 13


def test_where_nothing_can_be_written_the_index_is_in_memory(tmp_path: Path) -> None:
    (tmp_path / "local").write_text("no folder")
    index = SqliteMemories(tmp_path / "local")
    index.replace([Document("file:a", "1", (Passage("a", "cart"),))])
    assert index.search(["cart"], 1) == (Passage("a", "cart"),)
    index.close()


def test_recall_that_cannot_be_had_is_said_and_breaks_nothing(
    bench: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = bench()

    def broken() -> None:
        raise StoreError("the disk is gone")

    monkeypatch.setattr(one.index, "versions", broken)
    assert one.sources("cart") == []
    assert one.notices == ["nothing could be recalled: the disk is gone"]


def test_index_is_private(bench: Open, checkout: Any) -> None:
    one = bench()
    one.sources("cart")
    modes = {stat.S_IMODE(path.stat().st_mode) for path in checkout.local.glob("recall*")}
    assert modes == {0o600}


def _write(local: Path, who: int, ready: Any) -> None:
    ready.wait(60)
    index = SqliteMemories(local)
    for number in range(30):
        text = f"writer{who} document{number}"
        index.replace([Document(f"file:{who}/{number}", "1", (Passage(f"{who}/{number}", text),))])
        assert index.search([f"document{number}"], 9)
    index.close()


def test_two_processes_at_once_lose_nothing(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    ready = context.Barrier(2)
    processes = [context.Process(target=_write, args=(tmp_path, who, ready)) for who in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
        assert process.exitcode == 0
    index = SqliteMemories(tmp_path)
    assert len(index.versions()) == 60
    assert len(index.search(["writer0"], 99)) == len(index.search(["writer1"], 99)) == 30
    index.close()


def test_listing_of_a_tree_has_regular_files_alone_with_their_sizes(checkout: Any) -> None:
    (checkout.root / "link").symlink_to("Makefile")
    (checkout.root / "caf\udce9.txt").write_text("odd\n")
    checkout.git("add", "-A", ":!.local")
    checkout.git("commit", "-q", "-m", "odd")
    repository = checkout.repository()
    files = {file.path: file for file in repository.files(repository.tree_of(repository.head()))}
    assert len(files) == 14
    assert files["caf\udce9.txt"].size_bytes == 4
    blobs = [files["Makefile"].blob, "0" * 40, files["caf\udce9.txt"].blob, files["Makefile"].blob]
    assert repository.read_blobs(blobs) == {
        files["Makefile"].blob: b"lint:\n\truff check .\n",
        files["caf\udce9.txt"].blob: b"odd\n",
    }
    assert repository.read_blobs([]) == {}
