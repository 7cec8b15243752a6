"""In the place of verl, in tests of what is around it: its trainer and merger, which do little.

What they are to do wrong is in the JSON of STAND_IN, see there.
"""

import json
import os

PLAN = json.loads(os.environ.get("STAND_IN", "{}"))
