"""What a sweep found, as a page, as tables for other programs, and as a summary for a reviewer.

    python -m lathe.report results/modes.sweep.jsonl -o modes.html

It needs no PyTorch: numpy, and for the page Jinja2 and vl-convert-python, which are imported where
they are used. From file to page: results_file, configurations, estimates, then summary, ablation,
comparison and trust, then plots and page.
"""
