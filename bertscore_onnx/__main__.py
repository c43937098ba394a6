"""The command line, as `python -m bertscore_onnx`."""

from bertscore_onnx.cli import main

if __name__ == "__main__":
    main()
