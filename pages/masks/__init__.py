"""Masks: who may look at whom, and how far does it reach?"""
