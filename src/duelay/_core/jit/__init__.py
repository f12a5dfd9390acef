"""Compile kernels: decorators, a cache on disk, compilation in the background."""
