"""The deny floor: what no worker may do, judged by its effect; no setting lifts it."""
