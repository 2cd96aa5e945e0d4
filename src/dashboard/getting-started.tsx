import type { ComponentChildren } from 'preact';
import { SAMPLE_PAYMENT } from '../domain/sample-payment';
import type { DashboardDeps } from './deps';
import { Badge, Copyable, PageHead, Panel } from './parts';
import type { Answer, Call, Route } from './route';

const TITLE = 'Getting started';
/** Latest events that are looked through for one that was acknowledged. */
const LATEST = 100;

export const GETTING_STARTED_ROUTES: readonly Route[] = [
  { method: 'get', path: '/getting-started', act: 'view', title: TITLE, handle: show },
];

interface Step {
  title: string;
  isDone: boolean;
  children: ComponentChildren;
}

/** Steps from the first key to the first acknowledged webhook, ticked off as they are done. */
async function show(call: Call, deps: DashboardDeps): Promise<Answer> {
  const steps = await stepsOf(call, deps);
  const done = steps.filter(({ isDone }) => isDone).length;
  return {
    page: (
      <>
        <PageHead title={TITLE} />
        <p class="muted">{`${done} of ${steps.length} steps are done in ${call.viewer.env}.`}</p>
        <ol class="steps">
          {steps.map(({ title, isDone, children }) => (
            <li key={title}>
              <Panel>
                <h2>
                  {title}{' '}
                  <Badge tone={isDone ? 'good' : 'plain'}>{isDone ? 'Done' : 'To do'}</Badge>
                </h2>
                {children}
              </Panel>
            </li>
          ))}
        </ol>
      </>
    ),
  };
}

async function stepsOf(call: Call, deps: DashboardDeps): Promise<Step[]> {
  const { stores } = deps;
  const { account_id, livemode } = call.scope;
  const [keys, payments, endpoint, events, people] = await Promise.all([
    stores.keys.forAccount(account_id),
    stores.payments.list({ ...call.scope, limit: 1 }),
    stores.endpoints.get(account_id, livemode),
    stores.events.list({ ...call.scope, limit: LATEST }),
    stores.users.forAccount(account_id),
  ]);
  const own = keys.filter((key) => key.livemode === livemode && key.revoked_at === null);
  const me = people.find(({ _id }) => _id === call.viewer.user.id);
  return [
    keyStep(
      call,
      own.length > 0,
      own.some(({ last_used_at }) => last_used_at !== null),
    ),
    paymentStep(call, deps, payments.length > 0),
    endpointStep(call, endpoint?.url),
    deliveryStep(events.some(({ delivery }) => delivery.status === 'delivered')),
    {
      title: 'Guard your own login',
      isDone: me !== undefined && me.totp !== null,
      children: (
        <p>
          <a href={call.href('/profile')}>Set up a second factor</a>, so that a stolen password is
          not enough.
        </p>
      ),
    },
    {
      title: 'Invite your team',
      isDone: people.length > 1,
      children: (
        <p>
          <a href={call.href('/team')}>Invite a person</a>, with the role that fits: nobody needs to
          share a login.
        </p>
      ),
    },
  ];
}

function keyStep(call: Call, has: boolean, isUsed: boolean): Step {
  const words = isUsed ? 'It has been used.' : 'It has not been used yet.';
  return {
    title: 'Make an API key',
    isDone: has,
    children: (
      <p>
        Your server sends it with each request.{' '}
        {has ? words : <a href={call.href('/api-keys')}>Create a key</a>}
      </p>
    ),
  };
}

function paymentStep(call: Call, { publicUrl }: DashboardDeps, isDone: boolean): Step {
  const body = JSON.stringify(SAMPLE_PAYMENT);
  const command =
    `curl -sS ${publicUrl}/v1/payments -H "Authorization: Bearer $API_KEY"` +
    ` -H 'Content-Type: application/json' -H "Idempotency-Key: first-payment" -d '${body}'`;
  return {
    title: 'Make a payment',
    isDone,
    children: (
      <>
        <p>{`Put a key of ${call.viewer.env} in API_KEY, and paste this:`}</p>
        <Copyable label="command" text={command} />
      </>
    ),
  };
}

function endpointStep(call: Call, url: string | undefined): Step {
  return {
    title: 'Register a webhook endpoint',
    isDone: url !== undefined,
    children: (
      <p>
        {url === undefined ? (
          <>
            We tell your server what becomes of each payment.{' '}
            <a href={call.href('/webhooks')}>Set the endpoint</a>
          </>
        ) : (
          <>
            Events go to <code>{url}</code>.
          </>
        )}
      </p>
    ),
  };
}

function deliveryStep(isDone: boolean): Step {
  return {
    title: 'Acknowledge your first webhook',
    isDone,
    children: (
      <p>
        Verify its signature, and answer with any 2xx. Fulfil an order on{' '}
        <code>payment.settled</code>, never on the customer’s return alone.
      </p>
    ),
  };
}
