#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Dashboard, alerts and docs/metrics.md name the metrics that there are: test_files.py BUILD"""

import json
import re
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

BUILD = Path(sys.argv[1]).absolute()
SOURCE = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(SOURCE / "tests/lib"), str(Path(__file__).parent)]

import exposition  # noqa: E402  pylint: disable=wrong-import-position
import tap  # noqa: E402  pylint: disable=wrong-import-position

METRICS = BUILD / "host-daemon/metrics/vgpu-metrics"
FOLDER = SOURCE / "host-daemon/metrics"
DASHBOARD, ALERTS = FOLDER / "dashboard.json", FOLDER / "alerts.yml"
PAGE = (SOURCE / "docs/metrics.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| `(vgpu_\w+)` \| (\w+) \| ([^|]*)\| ([^|]+) \|$", re.M)


def served():
    """Families without a vgpud: those of all options have their texts in any case."""
    done = subprocess.run([METRICS, "--once", "--processes", "--socket", "/nonexistent/socket"],
                          text=True, timeout=60, capture_output=True, check=False)
    assert done.returncode == 1 and "vgpu-metrics: " in done.stderr, done
    return exposition.parse(done.stdout)


class Files(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.families = served()
        cls.names = {name + ending for name, family in cls.families.items()
                     for ending in exposition.ENDINGS[family.type]}

    def check(self, expression):
        used = set(re.findall(r"\bvgpu_\w+", expression))
        self.assertTrue(used, expression)
        self.assertLessEqual(used, self.names, expression)

    def test_the_page_has_all_metrics_with_their_types(self):
        rows = {name: kind for name, kind, _, _ in ROW.findall(PAGE)}
        self.assertEqual(rows, {name: family.type for name, family in self.families.items()})
        self.assertEqual(len(rows), len(ROW.findall(PAGE)))

    def test_only_vgpud_itself_has_samples_without_it(self):
        self.assertEqual({name for name, family in self.families.items() if family.samples},
                         {"vgpu_up", "vgpu_snapshot_duration_seconds"})
        self.assertEqual(list(self.families["vgpu_up"].samples.values()), [0])

    def test_the_dashboard_names_metrics_that_exist(self):
        dashboard = json.loads(DASHBOARD.read_text(encoding="utf-8"))
        expressions = [target["expr"] for panel in dashboard["panels"]
                       for target in panel["targets"]]
        self.assertGreater(len(expressions), 20)
        for expression in expressions:
            self.check(expression)
        numbers = [panel["id"] for panel in dashboard["panels"]]
        self.assertEqual(len(set(numbers)), len(numbers))
        for variable in dashboard["templating"]["list"][1:]:
            self.check(variable["query"]["query"])

    def test_the_dashboard_shows_all_metrics_of_machines(self):
        text = DASHBOARD.read_text(encoding="utf-8")
        hidden = [name for name in self.families if name not in text
                  and not name.startswith("vgpu_process_")]
        self.assertEqual(hidden, ["vgpu_snapshot_duration_seconds", "vgpu_vm_sessions_limit",
                                  "vgpu_vm_weight"])

    def test_alerts_name_metrics_that_exist(self):
        text = ALERTS.read_text(encoding="utf-8")
        rules = re.findall(r"^ +expr: (?:>-\n)?((?:.|\n)*?)(?=\n +(?:for|labels):)", text, re.M)
        self.assertEqual(len(rules), text.count("alert: "))
        for rule in rules:
            self.check(rule)

    def test_alerts_are_yaml(self):
        try:
            import yaml  # pylint: disable=import-outside-toplevel
        except ImportError:
            self.skipTest("python3-yaml is not installed")
        rules = yaml.safe_load(ALERTS.read_text(encoding="utf-8"))["groups"][0]["rules"]
        names = [rule["alert"] for rule in rules]
        self.assertEqual(len(set(names)), len(names))
        for rule in rules:
            self.assertIn(rule["labels"]["severity"], ("info", "warning", "critical"))
            self.assertTrue(rule["annotations"]["summary"])

    def test_prometheus_accepts_rules_and_names(self):
        promtool = shutil.which("promtool")
        if not promtool:
            self.skipTest("promtool of the package prometheus is not installed")
        done = subprocess.run([promtool, "check", "rules", ALERTS], text=True, timeout=60,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)
        text = subprocess.run([METRICS, "--once", "--processes", "--socket", "/nonexistent"],
                              timeout=60, capture_output=True, check=False).stdout
        done = subprocess.run([promtool, "check", "metrics"], input=text, timeout=60,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, b""))

    def test_command_line(self):
        for words in (["--listen", "0.0.0.0:9835"], ["--listen", "x"], ["--listen"], ["word"],
                      ["--frob"]):
            done = subprocess.run([METRICS, *words], text=True, timeout=60, capture_output=True,
                                  check=False)
            self.assertEqual(done.returncode, 2, words)
            self.assertIn("Try 'vgpu-metrics --help'", done.stderr)
        for words in (["--help"], ["--version"]):
            done = subprocess.run([METRICS, *words], text=True, timeout=60, capture_output=True,
                                  check=True)
            self.assertIn("vgpu-metrics", done.stdout)
        done = subprocess.run([METRICS, "--listen", "/nonexistent/x"], text=True, timeout=60,
                              capture_output=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("/nonexistent/x: No such file", done.stderr)


if __name__ == "__main__":
    sys.exit(tap.unittest_main())
