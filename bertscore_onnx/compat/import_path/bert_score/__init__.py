"""What `import bert_score` finds in a process that inherits the search path of one with the stand-in."""

import sys

from bertscore_onnx.compat import install

del sys.modules[__name__]
install()
