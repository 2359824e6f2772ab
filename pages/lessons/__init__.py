"""The Lessons page: the lessons that ship with the lab, a lesson from a file, and the lesson editor."""
