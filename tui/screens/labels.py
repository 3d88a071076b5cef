"""Text beside its label, folded so that it stays there."""

from __future__ import annotations

from textual.content import Content

LABEL_WIDTH = 14


def labelled_rows(
    label: str, text: str, width: int, *, label_width: int = LABEL_WIDTH
) -> list[Content]:
    """Fold `text` at spaces to the room beside its label.

    Args:
        label: stands before the first row.
        text: one line.
        width: cells, those of the label included.
        label_width: cells of the label.
    """
    room = max(12, width - label_width)
    folded = [""]
    for word in text.split(" "):
        if folded[-1] and len(folded[-1]) + 1 + len(word) > room:
            folded.append(word)
        else:
            folded[-1] = f"{folded[-1]} {word}".strip()
    labels = [label, *[""] * (len(folded) - 1)]
    return [
        Content.styled(f"{name:<{label_width}}", "$primary") + Content(part)
        for name, part in zip(labels, folded, strict=True)
    ]
