"""The modules of event_pipeline.py as tasks of a Dask cluster, each on whatever worker is free.

Within a pipeline nothing waits for a device but what must; a task's result is for any process, so
that each task waits for its own work. A pipeline in a task, of a whole file's events, has both.
"""

import numpy as np
from distributed import Client, LocalCluster
from event_pipeline import (
    MODULES,
    Spectrum,
    calibrated,
    chooser,
    measured,
    peak,
    spectrum_on_host,
    uploaded,
)

from hamr import hetero


def on_device(function, *inputs):
    """A device module as a task."""
    token = chooser().choose(0)
    with hetero.ScopedContext(token) as ctx:
        made = function(*inputs, ctx=ctx)
    token.stream.synchronize()
    return made


def external(producer, **inputs):
    """An external module as a task."""
    token = chooser().choose(0)
    names, values = tuple(inputs), tuple(inputs.values())
    event = hetero.Event(0, None, 0, token.place, producer.name, names, values)
    with hetero.ScopedContext(token) as ctx:
        producer.begin(token.place)
        producer.acquire(event, ctx)
    token.stream.synchronize()
    return producer.produce(event, None)


def spectrum(client, readings):
    """On a device or, where there is none, by the fallback."""
    if not hetero.device_filter(chooser().choose(0)):
        return client.submit(spectrum_on_host, readings)
    elements = client.submit(on_device, uploaded, readings)
    return client.submit(
        external, Spectrum(), calibrated=client.submit(on_device, calibrated, elements)
    )


def in_one_task(numbers):
    """Many events at a time, in a worker."""
    results = hetero.Pipeline(MODULES, streams=4, chooser=chooser()).run(numbers)
    return np.array([result["peak"] for result in results])


if __name__ == "__main__":
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        readings = [client.submit(measured, number) for number in range(5)]
        peaks = [client.submit(peak, spectrum(client, one)) for one in readings]
        print("a task for each module:", np.round(client.gather(peaks)))
        tasks = [client.submit(in_one_task, range(n, n + 5)) for n in (0, 20)]
        print("a pipeline in each task:", *(np.round(task.result()) for task in tasks))
