"""Version of this package, sent as ``User-Agent``."""

VERSION = "1.0.0"
