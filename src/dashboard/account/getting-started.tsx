import type { ComponentChildren } from 'preact';
import { SAMPLE_PAYMENT } from '../../domain/wire/samples';
import { readSetupProgress } from '../../service/money/overview';
import { Badge, Copyable, PageHead, Panel } from '../frame/parts';
import { type Call, type PageDeps, viewRoute } from '../frame/route';
import { showUrl } from '../webhooks/endpoint-parts';

const TITLE = 'Getting started';

export const GETTING_STARTED_ROUTE = viewRoute('/getting-started', TITLE, async (call, deps) => {
  const steps = await listSteps(call, deps);
  const doneCount = steps.filter(({ isDone }) => isDone).length;
  return (
    <>
      <PageHead title={TITLE} />
      <p class="muted">{`${doneCount} of ${steps.length} steps are done in ${call.viewer.env}.`}</p>
      <ol class="steps">
        {steps.map(({ title, isDone, children }) => (
          <li key={title}>
            <Panel>
              <h2>
                {title} <Badge tone={isDone ? 'good' : 'plain'}>{isDone ? 'Done' : 'To do'}</Badge>
              </h2>
              {children}
            </Panel>
          </li>
        ))}
      </ol>
    </>
  );
});

interface Step {
  title: string;
  isDone: boolean;
  children: ComponentChildren;
}

async function listSteps(call: Call, deps: PageDeps): Promise<Step[]> {
  const progress = await readSetupProgress(deps, call.scope, call.viewer.user.id);
  const keyText = progress.isKeyUsed ? 'It has been used.' : 'It has not been used yet.';
  return [
    {
      title: 'Make an API key',
      isDone: progress.hasKey,
      children: (
        <p>
          Your server sends it with each request.{' '}
          {progress.hasKey ? keyText : <a href={call.href('/api-keys')}>Create a key</a>}
        </p>
      ),
    },
    {
      title: 'Make a payment',
      isDone: progress.hasPayment,
      children: (
        <>
          <p>{`Put a key of ${call.viewer.env} in API_KEY, and paste this:`}</p>
          <Copyable label="command" text={buildSampleCommand(deps.publicUrl)} />
        </>
      ),
    },
    {
      title: 'Register a webhook endpoint',
      isDone: progress.endpointUrl !== undefined,
      children:
        progress.endpointUrl === undefined ? (
          <p>
            We notify your server of each change of a payment.{' '}
            <a href={call.href('/webhooks')}>Set the endpoint</a>
          </p>
        ) : (
          <p>
            Events go to <code>{showUrl(call, { url: progress.endpointUrl })}</code>.
          </p>
        ),
    },
    {
      title: 'Acknowledge your first webhook',
      isDone: progress.hasDelivery,
      children: (
        <p>
          Verify its signature, and answer with any 2xx. Fulfil an order on{' '}
          <code>payment.settled</code>, never on the customer’s return alone.
        </p>
      ),
    },
    {
      title: 'Guard your own login',
      isDone: progress.hasSecondFactor,
      children: (
        <p>
          <a href={call.href('/profile')}>Set up a second factor</a>, so that a stolen password is
          not enough.
        </p>
      ),
    },
    {
      title: 'Invite your team',
      isDone: progress.hasTeam,
      children: (
        <p>
          <a href={call.href('/team')}>Invite a person</a> with the role that fits, so that nobody
          shares a login.
        </p>
      ),
    },
  ];
}

function buildSampleCommand(publicUrl: string): string {
  return (
    `curl -sS ${publicUrl}/v1/payments -H "Authorization: Bearer $API_KEY"` +
    ` -H 'Content-Type: application/json' -H "Idempotency-Key: first-payment"` +
    ` -d '${JSON.stringify(SAMPLE_PAYMENT)}'`
  );
}
