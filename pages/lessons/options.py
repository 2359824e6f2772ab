"""The option of the Lessons page: the text of the lesson in the editor. A link can carry this text."""

from app.lessons.draft import DRAFT
from app.lessons.options import is_lesson, read_lesson, write_lesson
from app.state.controls import Options, link_only_option
from app.state.link_fields import Field


class LessonsOptions(Options):
    """The options that a link to this page carries in addition to those of all pages."""

    draft = link_only_option(lambda: Field(None, read_lesson, write_lesson, accepts=is_lesson), link=DRAFT)
