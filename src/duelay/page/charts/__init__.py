"""Charts of an experiment: their data, their axes, and their pictures as SVG."""
