"""The dashboard: what is wrong, why, and the button that mends it. A JSON API, and a page that uses nothing else."""
