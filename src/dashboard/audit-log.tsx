import { AUDITED, type AuditedAct, type AuditFacts, isOfAccount } from '../domain/audit-log';
import type { Actor, AuditLine } from '../store/audit-log';
import type { DashboardDeps } from './deps';
import { Filters, Select } from './fields';
import { PageHead, Pager, Panel, type Row, Table, When } from './parts';
import type { Answer, Call, Route } from './route';

const TITLE = 'Audit log';
const PATH = '/audit-log';
const PAGE = 50;
/** Form of the ids of lines, which are also the places in the list. */
const PLACE = /^[\dTZ:.-]{24}_[0-9a-f]{16}$/;

export const AUDIT_LOG_ROUTES: readonly Route[] = [
  { method: 'get', path: PATH, act: 'view', title: TITLE, handle: list },
];

async function list(call: Call, { stores }: DashboardDeps): Promise<Answer> {
  const act = actOf(call.query.get('act'));
  const [before, after] = [placeOf(call, 'before'), placeOf(call, 'after')];
  const filter = { ...call.scope, act, limit: PAGE + 1, before, after };
  const found = await stores.auditLog.list(filter);
  const page = found.slice(0, PAGE);
  const hasMore = found.length > PAGE;
  const lines = after === undefined ? page : page.toReversed();
  const isFirst = after === undefined ? before === undefined : !hasMore;
  const link = (where: 'before' | 'after', line: AuditLine | undefined) =>
    line && call.href(`${PATH}?${new URLSearchParams({ ...(act && { act }), [where]: line._id })}`);
  return {
    page: (
      <>
        <PageHead title={TITLE} />
        <p class="muted">
          Every change, by whatever door: who made it, what it was before and what after. Nothing
          here can be changed or removed.
        </p>
        <Filters action={call.href(PATH)}>
          <Select label="Change" name="act" value={act ?? ''} options={OPTIONS} />
        </Filters>
        <Panel>
          <Table
            label={TITLE}
            head={['When', 'Who', 'What', 'Before', 'After']}
            rows={lines.map(rowOf)}
            none="Nothing has been changed yet."
          />
        </Panel>
        <Pager
          newer={isFirst ? undefined : link('after', lines[0])}
          older={after !== undefined || hasMore ? link('before', lines.at(-1)) : undefined}
        />
      </>
    ),
  };
}

const OPTIONS: readonly (readonly [string, string])[] = [
  ['', 'All changes'],
  ...Object.entries(AUDITED).filter(([act]) => isAct(act) && isOfAccount(act)),
];

function rowOf({ _id, at, actor, act, target, before, after }: AuditLine): Row {
  return {
    key: _id,
    cells: [
      <When key="at" at={at} />,
      <span key="who" class="person">
        {nameOf(actor)}
      </span>,
      <span key="what">
        {AUDITED[act]} {target !== null && <code class="muted">{target}</code>}
      </span>,
      <FactList key="before" facts={before} />,
      <FactList key="after" facts={after} />,
    ],
  };
}

function nameOf(actor: Actor): string {
  if (actor.door === 'dashboard') return actor.email;
  if (actor.door === 'api') return `${actor.key_id} (API)`;
  if (actor.door === 'workflow') return `${actor.operator} (operator)`;
  const who = actor.operator === undefined ? '' : `${actor.operator}, `;
  return `${who}${actor.system_user} at ${actor.host} (command line)`;
}

function FactList({ facts }: { facts: AuditFacts | null }) {
  const entries = Object.entries(facts ?? {}).filter(([, value]) => value !== undefined);
  if (entries.length === 0) return <span class="muted">–</span>;
  return (
    <ul class="facts">
      {entries.map(([name, value]) => (
        <li key={name}>
          <span class="muted">{name}</span> {wordsOf(value)}
        </li>
      ))}
    </ul>
  );
}

function wordsOf(value: AuditFacts[string]): string {
  if (value === null || value === undefined) return 'none';
  if (typeof value === 'object') return value.length === 0 ? 'none' : value.join(', ');
  return String(value);
}

function actOf(text: string | null): AuditedAct | undefined {
  return text !== null && isAct(text) ? text : undefined;
}

function isAct(text: string): text is AuditedAct {
  return Object.hasOwn(AUDITED, text);
}

function placeOf({ query }: Call, name: string): string | undefined {
  const text = query.get(name) ?? '';
  return PLACE.test(text) ? text : undefined;
}
