"""XML of other programs as elements with their lines, by the standard library; declarations and entities are refused.

A file of a few bytes may stand for very much text: an entity that names ten others, and so on. No configuration needs entities, so a file
with a document type is refused at the line where it starts. The bytes of a file and the number of its elements have the limits of
:mod:`fairopt.files.limits`.

>>> root = parse_xml("<allocations><queue name='a'><weight> 2.0 </weight></queue></allocations>", "fair-scheduler.xml")
>>> root.name, [(each.name, each.attributes, each.line) for each in root.children], root.children[0].children[0].text.strip()
('allocations', [('queue', {'name': 'a'}, 1)], '2.0')
>>> parse_xml("<!DOCTYPE x [<!ENTITY a 'b'>]><x>&a;</x>", "queues.xml")
Traceback (most recent call last):
fairopt.errors.InvalidInstance: queues.xml, line 1: the file declares a document type (DOCTYPE), whose entities ...; remove it
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NoReturn
from xml.parsers import expat

from fairopt.errors import InvalidInstance
from fairopt.files.limits import check_values
from fairopt.wording import brief

__all__ = ["Element", "parse_xml"]


@dataclass(slots=True, eq=False)
class Element:
    """An element: its name, attributes, the elements in it, its text, and where it starts."""

    name: str
    attributes: dict[str, str]
    file: str
    line: int
    children: list[Element] = field(default_factory=list)
    text: str = ""

    @property
    def place(self) -> str:
        """The file and the line."""
        return f"{self.file}, line {self.line}"

    def refuse(self, message: str) -> NoReturn:
        """Raise InvalidInstance for this place."""
        raise InvalidInstance(f"{self.place}: {message}")


def parse_xml(text: str, file: str) -> Element:
    """Return the outermost element of XML; ``file`` is its name in messages.

    Raises
    ------
    InvalidInstance
        It has too many elements, is not XML, or declares a document type.
    """
    check_values(file, text.count("<"))
    parser = expat.ParserCreate("utf-8")
    parser.buffer_text = True
    whole = Element("", {}, file, 0)
    inside = [whole]
    texts: list[list[str]] = [[]]

    def start(name: str, attributes: dict[str, str]) -> None:
        element = Element(name, attributes, file, parser.CurrentLineNumber)
        inside[-1].children.append(element)
        inside.append(element)
        texts.append([])

    def end(name: str) -> None:
        inside.pop().text = "".join(texts.pop())

    def declares(*_: object) -> NoReturn:
        raise InvalidInstance(
            f"{file}, line {parser.CurrentLineNumber}: the file declares a document type (DOCTYPE), whose entities may stand for texts "
            "without end; remove it"
        )

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = lambda text: texts[-1].append(text)
    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = declares
    try:
        parser.Parse(text.encode("utf-8", "surrogatepass"), True)
    except expat.ExpatError as error:
        shown = brief(expat.ErrorString(error.code))
        raise InvalidInstance(f"{file}, line {error.lineno}: this is not XML ({shown}); save or export the file again") from None
    return whole.children[0]
