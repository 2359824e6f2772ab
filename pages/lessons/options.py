"""What a link to this page carries: the lesson that is being made."""

from app.controls import Options, kept
from app.lessons.draft import DRAFT
from app.lessons.options import is_lesson, read_lesson, write_lesson
from app.share import Field


class LessonsOptions(Options):
    """What a link to this page carries beside what all pages share."""

    draft = kept(lambda: Field(None, read_lesson, write_lesson, accepts=is_lesson), link=DRAFT)
