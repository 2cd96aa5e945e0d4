import type { IncomingMessage, RequestListener } from 'node:http';
import Router from '@koa/router';
import Koa from 'koa';
import { addAsset } from '../../../src/pages/assets';
import { renderDocument } from '../../../src/pages/layout';
import { pageHeaders } from '../../../src/pages/security';
import { COLORS_CSS } from '../../../src/pages/styles';
import type { Step } from './build';
import type { Shown } from './hide';
import { STEPS_MAX, type StepLog } from './steps';

const PAGE_PATH = '/connectors';
const STYLES_PATH = '/connectors/page.css';

const FORWARDED = ['forwarded', 'x-forwarded-for', 'x-forwarded-host', 'x-real-ip', 'via'];
const LOOPBACK = /^(?:::ffff:)?127\.|^::1$/;
const LOCAL_HOST = /^(?:localhost|127\.0\.0\.1|\[::1\])(?::\d+)?$/;

/** @see docs/connectors.md#see-what-it-does */
export function createPage(connector: string, steps: Pick<StepLog, 'list'>): RequestListener {
  const router = new Router();
  const stylesheet = addAsset(router, STYLES_PATH, 'text/css', STEPS_CSS);
  router.get(PAGE_PATH, (ctx) => {
    ctx.type = 'text/html; charset=utf-8';
    ctx.body = renderSteps({ connector, steps: steps.list(), stylesheet });
  });
  const app = new Koa();
  app.use(pageHeaders('http://localhost'));
  app.use(router.routes());
  const show = app.callback();
  return (request, response) => void show(request, response);
}

/** Accepts requests from this machine only: the bank reaches the port, too. */
export function isForPage({ url, method, headers, socket }: IncomingMessage): boolean {
  const path = url?.split('?', 1)[0];
  const isPage = method === 'GET' && (path === PAGE_PATH || path === STYLES_PATH);
  const isForwarded = FORWARDED.some((name) => headers[name] !== undefined);
  const isLocal = LOCAL_HOST.test(headers.host ?? '') && LOOPBACK.test(socket.remoteAddress ?? '');
  return isPage && isLocal && !isForwarded;
}

const STEPS_CSS = `${COLORS_CSS}
*, *::before, *::after { box-sizing: border-box; }
body {
  margin: 0; background: var(--page); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', sans-serif;
}
main { max-width: 1400px; margin: 0 auto; padding: 24px 16px 48px; }
h1, h2, h3, p, ol, pre { margin: 0; padding: 0; }
h1 { font-size: 24px; line-height: 1.25; }
h2 { font-size: 18px; margin-top: 32px; overflow-wrap: anywhere; }
h3 { font-size: 14px; color: var(--muted); }
ol { list-style: none; }
a { color: var(--accent); text-underline-offset: 3px; }
:focus-visible { outline: 3px solid var(--focus); outline-offset: 3px; }
code, pre { font: 13px/1.5 ui-monospace, 'SF Mono', Consolas, monospace; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; }
.top { display: flex; flex-wrap: wrap; gap: 8px 24px; align-items: baseline; }
.lead { max-width: 75ch; margin-top: 8px; }
.muted { color: var(--muted); }
.bad { color: var(--bad); font-weight: 600; }
.step {
  margin-top: 12px; padding: 16px; background: var(--card); border: 1px solid var(--line);
  border-radius: 12px; display: grid; gap: 16px; grid-template-columns: minmax(0, 1fr);
}
.step > .when { font-size: 14px; }
.part { min-width: 0; }
.label { font-size: 13px; margin-top: 4px; }
.exchange + .exchange { margin-top: 12px; padding-top: 12px; border-top: 1px solid var(--line); }
@media (max-width: 899px) { .part:has(.none) { display: none; } }
@media (min-width: 900px) {
  main { padding: 32px 32px 64px; }
  .step { grid-template-columns: 1fr 2fr 1fr 1.5fr; }
  .step > * { min-width: 0; }
  .step > .when { grid-column: 1 / -1; }
}
`;

interface StepsPage {
  connector: string;
  steps: readonly Step[];
  stylesheet: string;
}

function renderSteps({ connector, steps, stylesheet }: StepsPage): string {
  return renderDocument({
    title: `${connector} · Connector`,
    stylesheet,
    children: (
      <main>
        <div class="top">
          <h1>Connector {connector}</h1>
          <a href="/connectors">Reload</a>
        </div>
        <p class="lead muted">
          The last {STEPS_MAX} steps of this process in the sandbox, the newest first. Personal data
          and secrets are hidden.
        </p>
        {steps.length === 0 && (
          <>
            <h2>Nothing has happened yet</h2>
            <p class="lead">
              Create a payout, a payment or a refund with a sandbox key, over a method that is
              routed to this connector. Then reload this page.
            </p>
          </>
        )}
        {groupSteps(steps).map(({ id, title, resource_id, steps: own }) => (
          <section aria-labelledby={id}>
            <h2 id={id}>
              {title} {resource_id !== null && <code>{resource_id}</code>}
            </h2>
            <ol>
              {own.map((step) => (
                <StepCard {...step} />
              ))}
            </ol>
          </section>
        ))}
      </main>
    ),
  });
}

interface StepGroup {
  id: string;
  title: string;
  resource_id: string | null;
  steps: Step[];
}

function groupSteps(steps: readonly Step[]): StepGroup[] {
  const groups = new Map<string, StepGroup>();
  for (const step of steps) {
    const { resource, resource_id } = step;
    const id = `${resource}-${resource_id ?? 'refused'}`;
    const capitalized = `${resource.slice(0, 1).toUpperCase()}${resource.slice(1)}`;
    const title = resource_id === null ? 'Webhooks that were refused' : capitalized;
    const group = groups.get(id) ?? { id, title, resource_id, steps: [] };
    group.steps.push(step);
    groups.set(id, group);
  }
  return [...groups.values()];
}

function StepCard(step: Step) {
  const { at, source, instruction, exchanges, answer, failure, callbacks } = step;
  return (
    <li class="step">
      <p class="when">
        <time datetime={at.toISOString()}>{at.toISOString().slice(11, 19)} UTC</time>{' '}
        <strong>{source}</strong>
        {failure !== null && <span class="bad"> failed: {failure}</span>}
      </p>
      <div class="part">
        <h3>Instruction</h3>
        <Values of={instruction} />
      </div>
      <div class="part">
        <h3>Bank traffic</h3>
        {exchanges.length === 0 && <Nothing />}
        {exchanges.map(({ name, sent, status, received }) => (
          <div class="exchange">
            <code>
              {name} → {status}
            </code>
            {sent !== undefined && <Body label="Sent" of={sent} />}
            {received !== undefined && <Body label="Answered" of={received} />}
          </div>
        ))}
      </div>
      <div class="part">
        <h3>Answer</h3>
        <Values of={answer} />
      </div>
      <div class="part">
        <h3>Callback</h3>
        {callbacks.length === 0 && <Nothing />}
        {callbacks.map((callback) => (
          <Values of={callback} />
        ))}
      </div>
    </li>
  );
}

function Body({ label, of }: { label: string; of: Shown }) {
  return (
    <>
      <p class="label muted">{label}</p>
      <pre>{JSON.stringify(of, null, 2)}</pre>
    </>
  );
}

function Values({ of }: { of: Shown }) {
  return of === null ? <Nothing /> : <pre>{JSON.stringify(of, null, 2)}</pre>;
}

function Nothing() {
  return <p class="muted none">none</p>;
}
