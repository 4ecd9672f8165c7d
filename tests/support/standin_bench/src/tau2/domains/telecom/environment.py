import os
from pathlib import Path

from tau2.domains.desk import opened


def get_environment(db=None, user_db=None, solo_mode=False, policy_type="manual"):
    folder = Path(os.environ["TAU2_DATA_DIR"]) / "tau2" / "domains" / "telecom"
    main = "main_policy_solo.md" if solo_mode else "main_policy.md"
    support = "tech_support_manual.md"
    if policy_type == "workflow":
        support = "tech_support_workflow_solo.md" if solo_mode else "tech_support_workflow.md"
    tags = ("main_policy", "tech_support_policy")
    made = opened(folder, ("db.toml", "user_db.toml"), (main, support), tags, db, user_db)
    made.solo_mode = solo_mode
    return made
