"""The packages of the wheel and their folders; pyproject.toml has all other settings."""

from setuptools import find_packages, setup

setup(
    packages=[
        *find_packages(include=["attention_core*", "attention_lab*"]),
        *(f"attention_lab.{name}" for name in find_packages(include=["app*", "pages*"])),
    ],
    package_dir={"attention_lab.app": "app", "attention_lab.pages": "pages"},
)
