from __future__ import annotations

import math
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import ScenarioError
from harness.strict_yaml import MAX_BYTES, MAX_DEPTH, field_name, parse_document, read_document

FILE = Path("some.yaml")


def refused(text: str) -> str:
    with pytest.raises(ScenarioError) as caught:
        parse_document(FILE, text)
    return str(caught.value)


def refused_file(path: Path, content: bytes | None) -> str:
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ScenarioError) as caught:
        read_document(path)
    return str(caught.value)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("on", "on"),
        ("no", "no"),
        ("1:30", "1:30"),
        ("2024-01-01", "2024-01-01"),
        ("true", True),
        ("False", False),
        ("~", None),
        ("", None),
        ("12", 12),
        ("-3", -3),
        ("010", 10),
        ("0o10", 8),
        ("0x1f", 31),
        ("1e-3", 0.001),
        (".5", 0.5),
        ("1.", 1.0),
        ("-.inf", -math.inf),
        (".inf", math.inf),
        ("'12'", "12"),
        ('"true"', "true"),
        ("1_000", "1_000"),
        ("9" * 5000, "9" * 5000),
    ],
)
def test_scalars_mean_what_they_look_like(written: str, meant: object) -> None:
    value = parse_document(FILE, f"key: {written}\n").data["key"]
    assert value == meant
    assert type(value) is type(meant)


def test_nan_is_a_number() -> None:
    assert math.isnan(parse_document(FILE, "key: .nan").data["key"])


def test_a_key_is_always_text() -> None:
    document = parse_document(FILE, "on: 1\n2: x\ntrue: y\nnull: z\n")
    assert document.data == {"on": 1, "2": "x", "true": "y", "null": "z"}


def test_every_field_knows_its_line() -> None:
    text = "a: 1\nb:\n  - c: {d: 1,\n       e: 2}\n  - f\n"
    document = parse_document(FILE, text)
    assert document.data == {"a": 1, "b": ({"c": {"d": 1, "e": 2}}, "f")}
    assert {field_name(place): line for place, line in document.lines.items()} == {
        "": 1,
        "a": 1,
        "b": 2,
        "b[0]": 3,
        "b[0].c": 3,
        "b[0].c.d": 3,
        "b[0].c.e": 4,
        "b[1]": 5,
    }
    assert document.line(("b", 0, "missing", "deeper")) == 3
    assert document.line(("nowhere",)) == 1


@pytest.mark.parametrize(
    ("text", "line", "word"),
    [
        ("", 1, "no YAML document"),
        ("# only a comment\n", 1, "no YAML document"),
        ("--- \n", 2, "not a mapping"),
        ("- a\n- b\n", 1, "not a mapping"),
        ("just words\n", 1, "not a mapping"),
        ("a: 1\n---\nb: 2\n", 2, "second YAML document"),
        ("a: 1\nb: 2\na: 3\n", 3, "a: the key appears twice; expected it once (first in line 1)"),
        ("x:\n  a: 1\n  a: 2\n", 3, "x.a: the key appears twice"),
        ("a: &anchor 1\n", 1, "anchor '&anchor'"),
        ("a: 1\nb: *anchor\n", 2, "alias '*anchor'"),
        ("a: !!python/object:os.system x\n", 1, "tag"),
        ("a: !local x\n", 1, "tag '!local'"),
        ("? [a, b]\n: 1\n", 1, "a list or mapping as key"),
        ("a:\n\tb: 1\n", 2, "a tab; expected spaces"),
        ("a: 1\n\tb: 1\n", 2, "a tab; expected spaces"),
        ("a: [1, 2\nb: 3\n", 2, "not valid YAML"),
        ("a: {b: 1\n", 2, "not valid YAML"),
        ("a: 'open\n", 2, "not valid YAML"),
        ("a: b: c\n", 1, "not valid YAML"),
        ("a: 1\nb: \x07\n", 2, "is not allowed in YAML"),
        ("a: @x\n", 1, "not valid YAML"),
        ("%YAML 9.9\n---\na: 1\n", 1, "not valid YAML"),
        ("a: " + "[" * (MAX_DEPTH + 1) + "\n", 1, "nested deeper"),
        ("a: " + "{b: " * (MAX_DEPTH + 1) + "\n", 1, "nested deeper"),
        ("a: " + "[" * 60_000, 1, "nested deeper"),
    ],
)
def test_what_is_no_plain_mapping_is_refused_with_its_line(text: str, line: int, word: str) -> None:
    message = refused(text)
    assert message.startswith(f"some.yaml:{line}: ")
    assert word in message
    assert "\n" not in message


def test_an_alias_bomb_costs_nothing() -> None:
    bomb = "a: &a [x, x]\n" + "".join(
        f"{chr(98 + n)}: &{chr(98 + n)} [*{chr(97 + n)}, *{chr(97 + n)}]\n" for n in range(24)
    )
    assert "anchor" in refused(bomb)


def test_what_a_file_quotes_cannot_act_on_a_terminal() -> None:
    message = refused('"\\e[31mred\\u202e": 1\n"\\e[31mred\\u202e": 2\n')
    assert "\x1b" not in message
    assert "\u202e" not in message
    assert "\\x1b[31mred\\u202e" in message


def test_files_that_are_no_scenarios(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    assert "no such file" in refused_file(path, None)
    assert f"{path}:2: byte 0xff is not UTF-8" in refused_file(path, b"a: 1\n\xff\n")
    assert "is not allowed in YAML" in refused_file(path, b"\x00\x01\x02ELF")
    assert "not UTF-8" in refused_file(path, bytes(range(256)))
    assert f"at most {MAX_BYTES} bytes" in refused_file(path, b"a" * (MAX_BYTES + 1))
    assert "is a folder" in refused_file(tmp_path, None)
    assert "not a regular file" in refused_file(Path("/dev/zero"), None)
    fifo = tmp_path / "fifo.yaml"
    os.mkfifo(fifo)
    assert "not a regular file" in refused_file(fifo, None)
    assert "cannot be read" in refused_file(Path("a\0b"), None)
    assert "cannot be read" in refused_file(Path("x" * 5000), None)


def test_a_missing_file_names_the_one_beside_it(tmp_path: Path) -> None:
    (tmp_path / "kill-one-rank.yaml").write_text("a: 1\n")
    message = refused_file(tmp_path / "kill-one-rnak.yaml", None)
    assert message.endswith(f"did you mean '{tmp_path}/kill-one-rank.yaml'?")


def test_a_byte_order_mark_is_no_content(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_bytes(b"\xef\xbb\xbfa: 1\r\nb: 2\r\n")
    assert read_document(path).data == {"a": 1, "b": 2}


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet="ab:-[]{},&*!|>'\"#%@\t\n \\?~0.9eé\x00\u2028", max_size=60))
def test_any_text_is_read_or_refused_in_one_line(text: str) -> None:
    said = "some.yaml:1: fine"
    try:
        parse_document(FILE, text)
    except ScenarioError as error:
        said = str(error)
    assert said.startswith("some.yaml:")
    assert len(said.splitlines()) == 1
