"""What Schemathesis is told beyond its configuration."""

import schemathesis

# The executors of the run, their sessions, and the key that it is made with.
KEEP = {"alpha", "beta", "gamma"}


@schemathesis.hook
def before_call(context, case, kwargs):
    """Turns away what would remove the executors of the run, or call off its key."""
    if case.method.upper() == "DELETE":
        for name, value in case.path_parameters.items():
            if value in KEEP:
                case.path_parameters[name] = "nobody"


@schemathesis.check
def only_what_is_missing_is_unavailable(context, response, case):
    """503 is right when no session can answer, and a defect in all other cases."""
    if response.status_code == 503:
        body = response.json()
        code = body["code"] if "code" in body else body["error"]["code"]
        assert code == "sessions_unavailable", f"503 with the code `{code}`"
