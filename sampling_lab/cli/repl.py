"""The chat in a terminal: lines in, replies out as they come, and a few commands."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ..errors import ParameterError, SamplingLabError
from ..generation.conversation import Conversation, Turn
from ..generation.loop import Run
from ..generation.results import Generation
from ..sampling.parameters import PARAMETERS, format_value
from ..sampling.params import SamplingParams
from ..sampling.settings_text import parse_fields
from ..sampling.validation import whole_number
from .terminal import INTERRUPTED, Terminal

LEAVE = ("exit", "quit", "/exit", "/quit")

COMMANDS = {
    "help": ("", "this list"),
    "set": ("NAME VALUE", "change settings: /set temperature 0.5, top-p 0.9"),
    "show": ("", "the settings and how full the context is"),
    "seed": ("N", "draw every reply with this seed; /seed random: a fresh one each"),
    "retry": ("", "another reply to the same text, with the next seed"),
    "undo": ("", "forget the last turn"),
    "reset": ("", "forget all turns; the system message stays"),
    "system": ("TEXT", "change the system message; without TEXT, remove it"),
    "save": ("FILE", "write the conversation as JSON"),
}
"""Command -> its argument and a description."""

_AFTERWORD = (
    "exit            leave; so does Ctrl-D\n"
    "Ctrl-C          stop a reply and keep its text so far\n"
    "A line that ends in a backslash goes on in the next; // begins text with a slash."
)


class Repl:
    """The loop around a conversation."""

    def __init__(self, conversation: Conversation, screen: Terminal) -> None:
        self.conversation = conversation
        self.screen = screen
        self._dropped = 0  # as last told
        self._saved: set[Path] = set()
        self._failed = False

    def once(self, text: str) -> int:
        """Answer one text and return the exit status."""
        if (reply := self._reply(text)) is None:
            return INTERRUPTED
        for note in reply.notes:
            self.screen.remark(note)
        if self.conversation.params.seed is None and not reply.params.is_greedy:
            self.screen.remark(f"seed {reply.params.seed}")
        return 0

    def run(self) -> int:
        """Read and answer until the end of the input; return the exit status.

        A failed line is reported and the session goes on. Nobody may be watching
        a session that is no terminal, so there the exit status tells too.
        """
        if self.screen.is_interactive:
            self._greet()
        while True:
            try:
                if not self.handle(self._read()):
                    break
            except EOFError:
                if self.screen.is_interactive:
                    self.screen.end_line()
                break
            except KeyboardInterrupt:
                if not self.screen.is_interactive:
                    raise
                self.screen.end_line()
            except (SamplingLabError, OSError) as error:
                self._failed = True
                self.screen.remark(str(error), "error")
        return int(self._failed and not self.screen.is_interactive)

    def handle(self, line: str) -> bool:
        """Obey or answer one line; return whether to go on."""
        text = line if self.conversation.raw else line.strip()
        word = line.strip()
        if word in LEAVE:
            return False
        if word.startswith("/") and not word.startswith("//"):
            self._run_command(word[1:])
        elif text:
            is_escaped = word.startswith("//")
            self._answer(text.replace("//", "/", 1) if is_escaped else text)
        return True

    def _greet(self) -> None:
        conversation = self.conversation
        self.screen.remark(conversation.model.card.summary())
        how = "continues each line" if conversation.raw else "chat"
        self.screen.remark(
            f"{how} · {_described(conversation.params)} · /help lists the commands, "
            "Ctrl-C stops a reply, Ctrl-D leaves"
        )

    def _read(self) -> str:
        """Read a line and those it goes on in."""
        lines = [self.screen.read("you")]
        while lines[-1].endswith("\\"):
            lines[-1] = lines[-1][:-1]
            lines.append(self.screen.read("..."))
        return "\n".join(lines)

    def _answer(self, text: str) -> None:
        """Stream a reply and make a turn of it."""
        reply = self._reply(text)
        if reply is None:
            return
        self.conversation.keep(text, reply)
        for remark in self._remarks(reply):
            self.screen.remark(remark)
        self.screen.end_turn()

    def _reply(self, text: str) -> Generation | None:
        """Stream a reply; None when Ctrl-C came before it had begun.

        Where there is no person to go on talking, Ctrl-C ends everything.
        """
        run: Run | None = None
        try:
            run = self.conversation.start(text)
            self._tell_dropped()
            self.screen.begin_reply()
            for step in run:
                self.screen.piece(step.text)
        except KeyboardInterrupt:
            if not self.screen.is_interactive:
                self.screen.end_line()
                raise
        self.screen.end_line()
        return run.generation if run else None

    def _tell_dropped(self) -> None:
        dropped = self.conversation.dropped
        if dropped > self._dropped:
            context = self.conversation.model.card.context_length
            turns = "turn is" if dropped == 1 else f"{dropped} turns are"
            self.screen.remark(
                f"the context of {context:,} tokens is full: the oldest {turns} dropped"
            )
        self._dropped = dropped

    def _remarks(self, reply: Generation) -> list[str]:
        """Return what a person should know about how a reply ended."""
        if reply.finish_reason == "cancelled":
            return ["stopped"]
        if not reply.token_ids and reply.finish_reason == "context":
            return list(reply.notes[-1:])
        if self.conversation.is_cut(reply):
            return ["the reply ends here because the context is full"]
        if reply.finish_reason == "length":
            count = f"{reply.max_new_tokens:,} tokens"
            return [f"the reply ends here after {count}; see /set max-new-tokens"]
        return [] if reply.text.strip() else ["the reply is empty"]

    def _run_command(self, command: str) -> None:
        name, _, rest = command.partition(" ")
        if name not in COMMANDS:
            known = ", ".join(f"/{name}" for name in COMMANDS)
            raise ParameterError(f"there is no command /{name}; there are {known}")
        rest = rest.strip()
        usage = COMMANDS[name][0]
        is_missing = usage and not rest and name != "system"
        if is_missing or (rest and not usage):
            raise ParameterError(f"write /{name} {usage}".rstrip())
        action: Callable[[str], None] = getattr(self, f"_{name}")
        action(rest)

    def _help(self, _: str) -> None:
        rows = {f"/{name} {usage}": what for name, (usage, what) in COMMANDS.items()}
        lines = [f"{left:<15} {what}" for left, what in rows.items()]
        self.screen.remark("\n".join([*lines, _AFTERWORD]))

    def _set(self, rest: str) -> None:
        if rest == "author":
            self._take_authors()
        else:
            fields = parse_fields(rest, ("max_new_tokens",))
            limit = fields.pop("max_new_tokens", self.conversation.max_new_tokens)
            limit = whole_number("max_new_tokens", limit)
            params = self.conversation.params.replace(**fields)
            params.resolve(self.conversation.model.card.dialect)  # its rule for seeds
            self.conversation.params = params
            self.conversation.max_new_tokens = limit
        settings = _described(self.conversation.params)
        limit = self.conversation.max_new_tokens
        self.screen.remark(f"{settings}, at most {limit} tokens")

    def _take_authors(self) -> None:
        """Apply the checkpoint author's own settings, which nobody else does."""
        params = self.conversation.params
        defaults = self.conversation.model.card.defaults
        known = {k: v for k, v in defaults.items() if k in PARAMETERS}
        if not known:
            raise ParameterError("the author of this checkpoint names no settings")
        self.conversation.params = params.replace(**known)

    def _show(self, _: str) -> None:
        rows = {name.replace("_", "-"): value for name, value in self._rows().items()}
        lines = [f"{name:<15} {value}" for name, value in rows.items()]
        self.screen.remark("\n".join(lines))

    def _rows(self) -> dict[str, str]:
        conversation, card = self.conversation, self.conversation.model.card
        params = conversation.params
        rows = {
            name: format_value(name, getattr(params, name))
            for name, parameter in PARAMETERS.items()
            if parameter.is_main or params.is_on(name)  # neutral ones say little
        }
        if params.seed is None:
            rows["seed"] = "a fresh one for each reply"
        if conversation.turns and not params.is_greedy:
            last = conversation.turns[-1].reply.params.seed
            rows["seed"] += f" (the last was {last})"
        rows["dialect"] = params.dialect or f"{card.dialect}, its own"
        rows["max_new_tokens"] = f"{conversation.max_new_tokens:,}"
        rows["system"] = conversation.system or "none"
        rows["turns"] = f"{len(conversation.turns)}, {conversation.dropped} dropped"
        rows["context"] = f"{self._used():,} of {card.context_length or '∞'} tokens"
        if card.defaults:
            offered = ", ".join(f"{k} {v}" for k, v in card.defaults.items())
            rows["author's own"] = f"{offered}; /set author takes them"
        return rows

    def _used(self) -> int:
        """Return the length of the last prompt and its reply."""
        if not self.conversation.turns:
            return 0
        reply = self.conversation.turns[-1].reply
        return len(reply.prompt_ids) + len(reply.token_ids)

    def _seed(self, rest: str) -> None:
        self._set(f"seed {rest}")

    def _retry(self, _: str) -> None:
        """Answer the last text again; the old reply stays if no new one comes."""
        old = self._pop()
        params = self.conversation.params
        if params.is_greedy:
            self.screen.remark("temperature is 0, so the reply will be the same")
        elif params.seed is not None:
            following = 0 if params.seed == 2**64 - 1 else params.seed + 1
            self.conversation.params = params.replace(seed=following)
            self.screen.remark(f"seed {following}")
        count = len(self.conversation.turns)
        try:
            self._answer(old.text)
        finally:
            if len(self.conversation.turns) == count:
                self.conversation.turns.append(old)

    def _undo(self, _: str) -> None:
        self.screen.remark(f"forgot: {self._pop().text}")

    def _pop(self) -> Turn:
        if not self.conversation.turns:
            raise ParameterError("there is no turn yet; say something first")
        return self.conversation.turns.pop()

    def _reset(self, _: str) -> None:
        count = len(self.conversation.turns)
        self.conversation.turns.clear()
        self.conversation.dropped = self._dropped = 0
        self.screen.remark(f"forgot {count} turns")

    def _system(self, rest: str) -> None:
        if self.conversation.raw:
            raise ParameterError("a raw continuation has no system message")
        self.conversation.system = rest or None
        self.screen.remark(f"system message: {rest or 'none'}")

    def _save(self, rest: str) -> None:
        """Write the conversation; only a file of this session is written over."""
        path = Path(rest).expanduser().absolute()
        if path.exists() and path not in self._saved:
            raise ParameterError(f"{path} is there already; choose another name")
        self.conversation.save(path)
        self._saved.add(path)
        self.screen.remark(f"saved {len(self.conversation.turns)} turns in {path}")


def _described(params: SamplingParams) -> str:
    """Return the settings in words, the temperature always among them."""
    words = params.describe()
    return words if params.temperature != 1 else f"temperature 1, {words}"
