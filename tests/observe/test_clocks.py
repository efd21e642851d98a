from __future__ import annotations

import pytest

from harness.observe.clocks import ClockTable, Offset, RoundTrip, estimate


def test_the_shortest_round_trip_decides() -> None:
    # A node whose clock reads 100 s less; the second trip took 20 ms, evenly split.
    slow = RoundTrip(sent_s=1000.0, node_s=900.9, received_s=1001.0)
    fast = RoundTrip(sent_s=1002.0, node_s=902.01, received_s=1002.02)
    found = estimate([slow, fast])
    assert found.offset_s == pytest.approx(100.0)
    assert found.error_s == pytest.approx(0.01)


def test_no_round_trip_is_an_error() -> None:
    with pytest.raises(ValueError, match="at least one"):
        estimate([])


def test_a_node_of_this_host_needs_no_offset() -> None:
    clocks = ClockTable({"far": Offset(5.0, 0.25)})
    assert clocks.to_tester_s("n0", 2_500_000_000) == 2.5
    assert clocks.to_tester_s("far", 2_500_000_000) == 7.5
    assert clocks.error_s() == 0.25
    assert ClockTable().error_s() == 0.0
