import {
  AUDIT_LABELS,
  type AuditedAct,
  type AuditFacts,
  isAccountAct,
} from '../../domain/account/audit-log';
import { listAuditLines, type MerchantLine } from '../../service/operators/audit/log';
import { getOrigin } from '../../webhooks/url';
import { Filters, Select } from '../frame/fields';
import { PageHead, Pager, Panel, type Row, Table, When } from '../frame/parts';
import { type Answer, type Call, type PageDeps, viewRoute } from '../frame/route';

const TITLE = 'Audit log';
const PATH = '/audit-log';
const CURSOR = /^[\dTZ:.-]{24}_[0-9a-f]{16}$/;

export const AUDIT_LOG_ROUTE = viewRoute(PATH, TITLE, list);

async function list(call: Call, deps: PageDeps): Promise<Answer> {
  const act = parseAct(call.query.get('act'));
  const query = { act, before: parseCursor(call, 'before'), after: parseCursor(call, 'after') };
  const { rows: lines, older, newer } = await listAuditLines(deps, call.scope, query);
  const link = (where: 'before' | 'after', line: string | undefined) =>
    line && call.href(`${PATH}?${new URLSearchParams({ ...(act && { act }), [where]: line })}`);
  return (
    <>
      <PageHead title={TITLE} />
      <p class="muted">
        Every change: who made it, and the values before and after it. No line can be changed or
        removed.
      </p>
      <Filters action={call.href(PATH)}>
        <Select label="Change" name="act" value={act ?? ''} options={OPTIONS} />
      </Filters>
      <Panel>
        <Table
          label={TITLE}
          head={['When', 'Who', 'What', 'Before', 'After']}
          rows={lines.map((line) => toRow(call, line))}
          none="Nothing has changed yet."
        />
      </Panel>
      <Pager newer={link('after', newer)} older={link('before', older)} />
    </>
  );
}

const OPTIONS: readonly (readonly [string, string])[] = [
  ['', 'All changes'],
  ...Object.entries(AUDIT_LABELS).filter(([act]) => isAct(act) && isAccountAct(act)),
];

function toRow(call: Call, line: MerchantLine): Row {
  const { _id, at, who, act, target } = line;
  const [before, after] = [line.before, line.after].map((facts) =>
    call.may('webhooks.change') ? facts : shortenUrl(facts),
  );
  return {
    key: _id,
    cells: [
      <When key="at" at={at} />,
      <span key="who" class="email">
        {who}
      </span>,
      <span key="what">
        {AUDIT_LABELS[act]} {target !== null && <code class="muted">{target}</code>}
      </span>,
      <FactList key="before" facts={before} />,
      <FactList key="after" facts={after} />,
    ],
  };
}

function shortenUrl(facts: AuditFacts | null): AuditFacts | null {
  const url = facts?.['url'];
  return typeof url === 'string' ? { ...facts, url: getOrigin(url) } : facts;
}

function FactList({ facts = null }: { facts: AuditFacts | null | undefined }) {
  const entries = Object.entries(facts ?? {}).filter(([, value]) => value !== undefined);
  if (entries.length === 0) return <span class="muted">–</span>;
  return (
    <ul class="facts">
      {entries.map(([name, value]) => (
        <li key={name}>
          <span class="muted">{name}</span> {formatValue(value)}
        </li>
      ))}
    </ul>
  );
}

function formatValue(value: AuditFacts[string]): string {
  if (value === null || value === undefined) return 'none';
  if (typeof value === 'object') return value.length === 0 ? 'none' : value.join(', ');
  return String(value);
}

function parseAct(text: string | null): AuditedAct | undefined {
  return text !== null && isAct(text) ? text : undefined;
}

function isAct(text: string): text is AuditedAct {
  return Object.hasOwn(AUDIT_LABELS, text);
}

function parseCursor({ query }: Call, name: string): string | undefined {
  const text = query.get(name) ?? '';
  return CURSOR.test(text) ? text : undefined;
}
