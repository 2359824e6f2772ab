"""The Lessons page: the lessons that come with the app, a lesson from a file, and the lesson editor."""
