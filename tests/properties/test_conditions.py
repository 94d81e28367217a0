from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tarry.core.conditions import Condition, Custom, InvalidAnswer, Match
from tarry.core.judgement import Judgement, short
from tarry.words import Verdict

SUCCESSES = {Verdict.SUCCEEDED, Verdict.PARTIAL, Verdict.SKIPPED}
FAILURES = {Verdict.FAILED, Verdict.CANCELLED, Verdict.EXPIRED}
VERDICTS = st.sampled_from(list(Verdict))
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
JSON = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8)


def always(verdict: Verdict) -> Condition:
    return Custom(lambda _document: verdict)


def says(condition: Condition) -> Verdict:
    return condition.judge({}).verdict


@given(st.lists(VERDICTS, min_size=2, max_size=5))
def test_all_of_is_the_first_failure_then_success_of_all_then_pending(verdicts: list[Verdict]) -> None:
    """`&` over any verdicts, however many, follows its three rules."""
    together = always(verdicts[0])
    for verdict in verdicts[1:]:
        together = together & always(verdict)
    failures = [verdict for verdict in verdicts if verdict in FAILURES]
    if failures:
        assert says(together) is failures[0]
    elif set(verdicts) <= SUCCESSES:
        assert says(together) in set(verdicts)
        assert (says(together) is Verdict.SUCCEEDED) == (set(verdicts) == {Verdict.SUCCEEDED})
    else:
        assert says(together) is Verdict.PENDING


@given(st.lists(VERDICTS, min_size=2, max_size=5))
def test_any_of_is_a_success_then_pending_then_the_first(verdicts: list[Verdict]) -> None:
    """`|` over any verdicts, however many, follows its three rules."""
    together = always(verdicts[0])
    for verdict in verdicts[1:]:
        together = together | always(verdict)
    successes = [verdict for verdict in verdicts if verdict in SUCCESSES]
    if successes:
        assert says(together) is successes[0]
    else:
        assert says(together) is (Verdict.PENDING if Verdict.PENDING in verdicts else verdicts[0])


@given(VERDICTS, VERDICTS, VERDICTS)
def test_how_a_chain_is_bracketed_does_not_matter(a: Verdict, b: Verdict, c: Verdict) -> None:
    """`&` and `|` are associative."""
    one, two, three = always(a), always(b), always(c)
    assert says((one & two) & three) is says(one & (two & three))
    assert says((one | two) | three) is says(one | (two | three))


@given(VERDICTS)
def test_not_twice_is_nothing(verdict: Verdict) -> None:
    """`~~a` says what a says, and `a & a` and `a | a` do for what ends or goes on plainly."""
    condition = always(verdict)
    assert says(~~condition) is verdict
    if verdict in SUCCESSES | FAILURES | {Verdict.PENDING}:
        assert says(condition & condition) is verdict
        assert says(condition | condition) is verdict


@given(JSON)
def test_match_judges_whatever_a_body_holds(body: object) -> None:
    """No JSON makes it raise, and what it shows is one short printable line."""
    judgement = Match("body.state", succeeded=["DONE", 1, True]).judge({"body": {"state": body}})
    assert (judgement.value is None) == (body is None)
    assert all(len(value) <= 60 and value.isprintable() for _, value in judgement.seen)


@given(st.text(max_size=100), st.booleans())
def test_a_text_is_judged_the_same_as_it_is_named_and_in_other_letters(text: str, over: bool) -> None:
    """A text that is named just so is found at once, and comes to what any other spelling of it does."""
    match = Match("body.state", succeeded=text, failed=["FAILED", text + "x"], over="all" if over else None)
    shown = short(text)
    expected = Judgement(Verdict.SUCCEEDED, shown, (("body.state", shown),))
    assert match.judge({"body": {"state": [text] if over else text}}) == expected
    other = text.swapcase()
    if other.casefold() == text.casefold():
        judgement = match.judge({"body": {"state": [other] if over else other}})
        assert judgement == replace(expected, value=short(other), seen=(("body.state", short(other)),))


@given(JSON)
def test_a_callable_is_understood_or_invalid(answer: object) -> None:
    """Whatever it answers, there is a verdict or `InvalidAnswer`, never a guess by truthiness."""
    try:
        verdict = Custom(lambda _document: answer).judge({}).verdict
    except InvalidAnswer:
        return
    assert answer in (1, 0, -1) or answer == verdict
