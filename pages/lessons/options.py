"""What a link to this page carries: the lesson that is being made."""

from app.lessons.draft import DRAFT
from app.lessons.options import is_lesson, read_lesson, write_lesson
from app.state.controls import Options, kept
from app.state.url import Field


class LessonsOptions(Options):
    """What a link to this page carries beside what all pages share."""

    draft = kept(lambda: Field(None, read_lesson, write_lesson, accepts=is_lesson), link=DRAFT)
