"""``python -m jaxpu`` is the same as the ``jaxpu`` command."""

from jaxpu.cli import main

if __name__ == "__main__":
    main()
