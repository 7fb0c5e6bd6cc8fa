"""Chromium without a driver: its debugging protocol over two pipes."""

import json
import os
import shutil
import subprocess
import tempfile
import time

PATH = shutil.which("chromium")
# Two frames later what was laid out is on the screen.
_TWO_FRAMES = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"


class Chromium:
    """One browser, closed with everything it wrote when the `with` block ends."""

    def __enter__(self):
        self.profile = tempfile.mkdtemp()
        commands, self.write_end = os.pipe()
        self.read_end, answers = os.pipe()
        # It reads commands from descriptor 3 and writes answers to 4.
        words = [PATH, "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe",
                 f"--user-data-dir={self.profile}", "about:blank"]
        self.process = subprocess.Popen(
            ["bash", "-c", f'exec 3<&{commands} 4>&{answers} "$@"', "bash", *words],
            pass_fds=(commands, answers), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(commands)
        os.close(answers)
        self.number, self.buffer, self.events = 0, b"", []
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        os.close(self.write_end)
        os.close(self.read_end)
        shutil.rmtree(self.profile, ignore_errors=True)

    def send(self, method, session=None, **parameters):
        """One command's result; raises when it fails or gives none in a minute."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self.write_end, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + 60
        while time.monotonic() < until:
            answer = self._next()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self.events.append(answer)
        raise TimeoutError(method)

    def _next(self):
        while b"\0" not in self.buffer:
            piece = os.read(self.read_end, 1 << 20)
            if not piece:
                raise RuntimeError("Chromium ended")
            self.buffer += piece
        message, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(message)

    def open(self, page, width=1280, height=900, dark=False):
        """A page that has loaded, by its file's path or its address, as a function that evaluates
        JavaScript in it.
        """
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable", session)
        self.send("Emulation.setDeviceMetricsOverride", session, width=width, height=height,
                  deviceScaleFactor=1, mobile=width < 600)
        self.send("Emulation.setEmulatedMedia", session, features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.events.clear()
        url = page if isinstance(page, str) else page.resolve().as_uri()
        self.send("Page.navigate", session, url=url)

        def evaluate(expression):
            result = self.send("Runtime.evaluate", session, expression=expression,
                               returnByValue=True, awaitPromise=True)
            if "exceptionDetails" in result:
                raise RuntimeError(json.dumps(result["exceptionDetails"])[:500])
            return result["result"].get("value")

        evaluate("new Promise((done) => document.readyState === 'complete' ? done() : "
                 "addEventListener('load', () => done()))")
        evaluate(_TWO_FRAMES)
        evaluate.session = session
        return evaluate

    def loading_seconds(self, path):
        """How long a page takes to load again: by the clock, and as time of its main thread."""
        evaluate = self.open(path)
        self.send("Performance.enable", evaluate.session, timeDomain="threadTicks")
        evaluate("window.isOld = true")
        self.send("Page.reload", evaluate.session)
        until = time.monotonic() + 60
        while True:
            try:
                if evaluate("!window.isOld && document.readyState === 'complete'"):
                    break
            except RuntimeError:  # asked between the two
                pass
            if time.monotonic() > until:
                raise TimeoutError(f"loading {path}")
        evaluate(_TWO_FRAMES)
        metrics = self.send("Performance.getMetrics", evaluate.session)["metrics"]
        wall = evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd") / 1e3
        return wall, next(m["value"] for m in metrics if m["name"] == "TaskDuration")

    def problems(self):
        """What was logged as an error or asked of the network, since the page was opened."""
        found = []
        for event in self.events:
            parameters = event.get("params", {})
            if event.get("method") == "Runtime.exceptionThrown":
                found.append(json.dumps(parameters)[:300])
            elif event.get("method") == "Log.entryAdded":
                found.append(parameters["entry"]["text"])
            elif event.get("method") == "Page.javascriptDialogOpening":
                found.append("a dialog: " + parameters["message"])
            elif event.get("method") == "Network.requestWillBeSent":
                url = parameters["request"]["url"]
                if not url.startswith("file:"):
                    found.append("a request: " + url)
        return found
