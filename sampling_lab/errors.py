"""The errors that the lab raises: one sentence each, with the next step in it."""


class SamplingLabError(Exception):
    """Anything the lab refuses; the message is one sentence for a person."""


class ParameterError(SamplingLabError, ValueError):
    """A sampling parameter, length or seed outside its rule."""


class LogitsError(SamplingLabError, ValueError):
    """Logits that hold NaN or +inf, or that allow no token at all."""


class PromptError(SamplingLabError, ValueError):
    """A prompt that cannot be encoded, is empty, or does not fit the context."""


class CheckpointError(SamplingLabError, ValueError):
    """A file or directory that is not a checkpoint the lab can load safely."""


class MissingPackageError(SamplingLabError, ImportError):
    """An optional package that this action needs; the message has the command."""


class FetchError(SamplingLabError, OSError):
    """A download that failed, or that is not what was expected."""
