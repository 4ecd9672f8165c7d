"""Reader of the labelled forms, ``LineForm``, ``BlockForm`` and ``NamedForm``: the first complete action counts.

A label begins a round, whose result the model has not seen; so what follows the first complete action is invented, with
or without ``User:`` or ``Result:`` before it. Two kinds of actions are passed over where another one follows: one that
repeats the format of the prompt, and one that the model takes back, or only names. Labels are recognized in every
typography that models give them; the action itself is never changed beyond the marks around it.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from coevo.models.answers.answer_page import MARK, Page, PagePart
from coevo.models.answers.label_payloads import (
    block_of,
    fence_payload,
    final_answer,
    is_template,
    label_at,
    line_of,
    repeats,
    text_payload,
)
from coevo.models.answers.labels import thought_before
from coevo.models.answers.spans import Whole, heredocs
from coevo.records.answer_faults import Fault
from coevo.records.answer_form import BlockForm, LineForm, NamedAction, NamedForm
from coevo.records.demonstration import Answer

LabelledForm = LineForm | BlockForm | NamedForm
_OR = re.compile(r"\W*(?:or|either|alternatively)\W*", re.IGNORECASE)
"""Text between two actions that are choices of a format."""
_CUE = re.compile(
    r"\b(?:template|for example|e\.g\.|examples?|formats? (?:is|are|was|given|should|must)|either)\b", re.IGNORECASE
)
"""Words of a line before an action that is an example of the format."""
_ROUND = re.compile(
    r"^[ >#*_]{0,12}(?:questions?|tasks?|next)(?: ?\d{1,3})?[*_ ]{0,8}:|^ *(?:[\-=_*~] ?){3,}$",
    re.IGNORECASE | re.MULTILINE,
)
"""Line behind an action that was used, where the sentence before it may be about its format."""
_SENTENCE = re.compile(r"(?<=[\w*]) +[a-z]")
"""Words behind a name without a payload: a sentence about it."""
_CORRECTS = re.compile(
    r"^\W*(?:thoughts?\W+)?(?:(?:oh|but|hm+|ah|so)\W+)?(?:(?:wait|actually|oops|sorry|correction|corrected|revised)\b|no,"
    r"|on second thought|i made (?:a|an) \w+|let me (?:correct|fix|revise|redo|rewrite)|that (?:is|was) wrong)",
    re.IGNORECASE | re.MULTILINE,
)
"""Beginning of a line that takes an action back."""


@dataclass(frozen=True, slots=True)
class LabelledAction:
    """An action behind a label.

    Attributes:
        name: its name, where the form has names.
        start: position of its label.
        end: position behind the action.
        action: its text; empty with a fault.
        fault: reason why it cannot be used; empty if it is complete.
        repeated: True if it repeats the format of the prompt.
    """

    name: str
    start: int
    end: int
    action: str
    fault: str = ""
    repeated: bool = False


def read_labelled(form: LabelledForm, text: str, finished: bool) -> Answer:
    """Read an answer in a labelled form.

    Args:
        form: the form.
        text: answer without thinking and without further turns.
        finished: False if the length limit cut it.
    """
    mark = re.compile(rf"^`{{3,}}(?=[*_ ]*{re.escape(form.label)}[*_]* ?:)", re.MULTILINE)
    data = Whole(heredocs(text))
    text = mark.sub(lambda found: found[0] if found.start() in data else f"{found[0]}\n", text)
    return _Labelled(form, Page(text, form.label, _names(form), finished), finished).answer()


def _names(form: LabelledForm) -> tuple[str, ...]:
    return tuple(each.name for each in form.actions) if isinstance(form, NamedForm) else ()


class _Labelled:
    """One answer in one form."""

    def __init__(self, form: LabelledForm, page: Page, finished: bool) -> None:
        self._form, self._page, self._finished = form, page, finished

    def answer(self) -> Answer:
        found = self._labelled_actions()
        unread = (self._end_behind(each) for each in found if self._is_unread(each))
        stop = next(unread, len(self._page.text))
        found = [each for each in found if each.start < stop]
        chosen = self._chosen([each for each in found if not each.fault or each.fault == Fault.CUT_OFF])
        if chosen is not None:
            return Answer(thought_before(self._page.text, chosen.start), chosen.action)
        cut = Fault.NO_ACTION if self._finished else Fault.CUT_OFF
        return Answer(self._page.text.strip(), "", found[-1].fault if found else cut)

    def _is_unread(self, each: LabelledAction) -> bool:
        """Report whether an action is there, though it cannot be read: what follows its result is invented."""
        if each.fault != Fault.NO_PAYLOAD:
            return each.fault == Fault.UNFENCED
        rest = self._page.shape[each.end : self._page.turn(each.end, len(self._page.text))].strip()
        return rest != "" and MARK.match(rest) is None

    def _end_behind(self, unread: LabelledAction) -> int:
        """Position behind which all is invented: the first turn, or the action itself if none takes it back."""
        is_kept = unread.fault == Fault.UNFENCED and _CORRECTS.search(self._page.text, unread.start) is None
        return unread.end if is_kept else self._page.turn(unread.end, len(self._page.text))

    def _chosen(self, complete: Sequence[LabelledAction]) -> LabelledAction | None:
        """The first action that does not repeat the format; one that it is corrected to before an invented turn."""
        used = [each for each in complete if not each.repeated] or list(complete[-1:] if self._finished else ())
        if not used:
            return None
        chosen, stop = used[0], self._page.turn(used[0].end, len(self._page.text))
        for following in used[1:]:
            if following.start > stop or not self._is_replaced(chosen, following):
                break
            chosen = following
        return None if chosen.fault else chosen

    def _is_replaced(self, each: LabelledAction, following: LabelledAction) -> bool:
        """Report whether an action is taken back, or is a bare name that another one with a payload follows."""
        is_mentioned = (
            isinstance(self._form, NamedForm) and " " not in each.action and following.action != following.name
        )
        return is_mentioned or _CORRECTS.search(self._page.text, each.end, following.start) is not None

    def _labelled_actions(self) -> list[LabelledAction]:
        """Actions behind labels in order; those that repeat the format are marked."""
        labels, end, found = self._page.labels, 0, list[LabelledAction]()
        for number, label in enumerate(labels):
            if label.start < end:
                continue
            following = next((each.start for each in labels[number + 1 :] if self._page.ends(label, each)), None)
            action = self._labelled_action(label, end, len(self._page.text) if following is None else following)
            end = max(end, action.end if not action.fault else label.end)
            found.append(action)
        return list(self._marked(found or self._implied()))

    def _marked(self, found: Sequence[LabelledAction]) -> Iterator[LabelledAction]:
        """Mark what repeats the format: examples, and their neighbours with other names."""
        repeated, named = False, set[str]()
        for number, each in enumerate(found):
            between = self._between(found, number)
            joined = not between or _OR.fullmatch(between) is not None
            is_next = repeated and joined and each.name not in {"", *named} and self._goes_on(found, number, between)
            opens = number + 1 < len(found) and _OR.fullmatch(self._between(found, number + 1)) is not None
            repeated = is_next or opens or each.fault == Fault.REPEATED or self._is_example(found, number)
            named = {*named, each.name} if repeated else set()
            yield replace(each, repeated=repeated)

    def _goes_on(self, found: Sequence[LabelledAction], number: int, between: str) -> bool:
        """Report whether an action that only blanks divide from a repeated one is itself followed by another."""
        if between or number + 1 == len(found):
            return between != ""
        following = found[number + 1]
        return self._page.turn(found[number].end, following.end) > following.start

    def _between(self, found: Sequence[LabelledAction], number: int) -> str:
        """Text between an action and the one before it."""
        return self._page.text[found[number - 1].end if number else 0 : found[number].start].strip("`~* \n")

    def _labelled_action(self, label: PagePart, since: int, stop: int) -> LabelledAction:
        page = self._page
        if isinstance(self._form, NamedForm):
            named = page.named(label, self._form.actions)
            if named is None:
                return LabelledAction("", label.start, label.end, "", Fault.UNKNOWN_NAME)
            return self._with_payload(named[1], named[0], since, stop)
        part = (line_of if isinstance(self._form, LineForm) else block_of)(page, label, stop)
        return self._checked(label, part, None)

    def _with_payload(self, label: PagePart, action: NamedAction, since: int, stop: int) -> LabelledAction:
        if action.fence is not None:
            return self._checked(label, fence_payload(self._page, label, action.fence, since, stop), action)
        if action.label is not None:
            return self._checked(label, text_payload(self._page, label, action, since, stop), action)
        if _SENTENCE.match(self._page.shape, len(self._page.shape[: label.end].rstrip(" "))):
            return LabelledAction("", label.start, label.end, "", Fault.UNKNOWN_NAME)
        is_cut = not self._finished and not self._page.text[label.end :].strip(" \t*_`")
        said, fault = ("", Fault.CUT_OFF) if is_cut else (action.name, "")
        return LabelledAction(action.name, label.start, label.end, said, fault)

    def _checked(self, label: PagePart, part: PagePart | None, action: NamedAction | None) -> LabelledAction:
        """An action, or its fault; ``action``: its name, if it has one."""
        name, language = (action.name, action.fence or "") if action is not None else ("", "")
        missing = Fault.NO_PAYLOAD if name else Fault.NO_ACTION
        if part is None or not part.text.strip():
            at_end = part is None or part.end == len(self._page.text)
            is_cut = not self._finished and at_end
            return LabelledAction(name, label.start, label.end, "", Fault.CUT_OFF if is_cut else missing)
        fault = part.fault
        if not self._finished and not part.closed:
            fault = Fault.CUT_OFF
        elif is_template(part.text, language.lower()):
            fault = Fault.REPEATED
        end = max(part.end, label.end)
        return LabelledAction(name, label.start, end, "" if fault else f"{name} {part.text}".strip(), fault)

    def _implied(self) -> list[LabelledAction]:
        """The payload of the only action with such a label, where the answer has no label of an action."""
        labelled = [each for each in self._form.actions if each.label] if isinstance(self._form, NamedForm) else []
        page, found = self._page, list[LabelledAction]()
        for action in labelled:
            label = label_at(page, str(action.label), 0, len(page.text))
            if label is not None:
                part = final_answer(page, label.end(), page.turn(label.end(), len(page.text)))
                found.append(self._checked(PagePart(*label.span()), part, action))
        return found if len(found) == 1 else []

    def _is_answered(self, found: Sequence[LabelledAction], number: int) -> bool:
        """Report whether the result of an action is invented before the next one, so that it was used."""
        behind = found[number + 1 : number + 2]
        is_said = any(self._page.speaker(each.start, each.end) == each.start for each in behind)
        return is_said or any(self._page.turn(found[number].end, each.start) < each.start for each in behind)

    def _is_example(self, found: Sequence[LabelledAction], number: int) -> bool:
        action = found[number]
        if action.fault:
            return False
        shown = " ".join(action.action.split()) in self._examples
        payload = action.action.removeprefix(f"{action.name} ")
        is_open = not self._is_answered(found, number)
        return shown or (is_open and (repeats(payload) or self._is_cued(found, number)))

    def _is_cued(self, found: Sequence[LabelledAction], number: int) -> bool:
        """Report whether the line before an action announces an example; a sentence may also be about its format."""
        before = self._page.text[: found[number].start]
        end = len(before.rstrip())
        line = before[before.rfind("\n", 0, end) + 1 : end] if "\n" in before[end:] else ""
        is_sentence, stop = line.endswith((".", "!", "?")), [each.start for each in found[number + 1 : number + 2]]
        is_used = is_sentence and any(_ROUND.search(self._page.shape, found[number].end, each) for each in stop)
        return _CUE.search(line) is not None and not is_used

    @cached_property
    def _examples(self) -> set[str]:
        return {" ".join(each.split()) for each in self._form.examples}
