"""What `python -m lathe.conformance` found, of one backend or several side by side, as a page or
as Markdown.
"""
