"""The page: what people look at, served by `duelay serve` and written by `duelay report`."""
