import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parser } from '@prometheus-io/lezer-promql';
import { parse } from 'yaml';
import { z } from 'zod';

const FOLDER = join(__dirname, '../../monitoring');

const Rule = z.strictObject({
  alert: z.string().regex(/^[A-Z]\w+$/),
  expr: z.string(),
  for: z.optional(z.string().regex(/^\d+[smh]$/)),
  labels: z.strictObject({ severity: z.enum(['page', 'ticket']) }),
  annotations: z.strictObject({
    summary: z.string().min(1),
    runbook_url: z.string().regex(/^\{\{ \$externalLabels\.docs \}\}\/[\w-]+#[\w-]+$/),
  }),
});
const Group = z.strictObject({ name: z.string(), rules: z.array(Rule).min(1) });
const Rules = z.strictObject({ groups: z.array(Group) });

const Target = z.looseObject({ expr: z.string() });
const Panel = z.looseObject({ title: z.string(), targets: z.array(Target).min(1) });
const Dashboard = z.looseObject({ title: z.string(), panels: z.array(Panel).min(1) });

function readRules() {
  const { groups } = Rules.parse(parse(readFileSync(join(FOLDER, 'alerts.yml'), 'utf8')));
  return groups.flatMap(({ rules }) => rules);
}

export function runbooks(): { alert: string; page: string; anchor: string }[] {
  return readRules().map(({ alert, annotations: { runbook_url } }) => {
    const [, page = '', anchor = ''] = /\}\/(.+)#(.+)$/.exec(runbook_url) ?? [];
    return { alert, page: `docs/${page}.md`, anchor };
  });
}

/** Expressions of the alert rules and of the dashboard, each with the name of what holds it. */
export function expressions(): { of: string; expr: string }[] {
  const grafana: unknown = JSON.parse(readFileSync(join(FOLDER, 'grafana.json'), 'utf8'));
  const { panels } = Dashboard.parse(grafana);
  return [
    ...readRules().map(({ alert, expr }) => ({ of: alert, expr })),
    ...panels.flatMap(({ title, targets }) =>
      // Grafana puts a time in its place.
      targets.map(({ expr }) => ({ of: title, expr: expr.replace('$__rate_interval', '5m') })),
    ),
  ];
}

/** Metrics that a PromQL expression names. @throws Error where it is none */
export function metricsIn(expr: string): string[] {
  const names: string[] = [];
  parser.parse(expr).iterate({
    enter: ({ type, name, from, to }) => {
      if (type.isError) throw new Error(`No PromQL at ${from}: ${expr}`);
      if (name === 'Identifier') names.push(expr.slice(from, to));
    },
  });
  return names;
}

/** Names on a page of metrics, with those of a histogram's parts. */
export function metricsOn(page: string): Set<string> {
  return new Set(
    [...page.matchAll(/^# TYPE (\S+) (\w+)$/gm)].flatMap(([, name = '', kind]) =>
      kind === 'histogram' ? ['_bucket', '_sum', '_count'].map((end) => name + end) : [name],
    ),
  );
}
