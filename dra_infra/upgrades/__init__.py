"""What changes between two releases of Kubernetes, compared from two answers about the same objects.

    differences  the records: differences, what was compared, steps, and the whole answer
    objects      what both servers accept, drop, default and keep stored
    selectors    verdict, cost and value of selectors
    placements   where pods go, and whether all of them fit at once
    quotas       keys that count claims
    evictions    pods that lose their devices
    releases     feature gates, metrics, and drivers
    reports      text, Markdown and data
    steps        what to do before and after the upgrade

No rule of Kubernetes lives here.
"""
