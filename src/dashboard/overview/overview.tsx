import type { ComponentChildren } from 'preact';
import { Refusal } from '../../domain/errors';
import { formatAmount, formatMoney } from '../../domain/money/money';
import { formatCount } from '../../domain/printable';
import { SAMPLE_PAYMENT } from '../../domain/wire/samples';
import { advanceClock } from '../../service/merchants/clock';
import {
  buildDays,
  type Day,
  listCurrencies,
  type Overview,
  readOverview,
  readSetupProgress,
  successRate,
} from '../../service/money/overview';
import { field } from '../frame/form';
import { Badge, Copyable, PageHead, Panel, Table, useCall, When } from '../frame/parts';
import { type Call, type PageDeps, postRoute, type Route, viewRoute } from '../frame/route';
import { ResourceLink } from '../resources/kinds';
import { showUrl } from '../webhooks/endpoint-parts';
import { BalanceTable } from './balances';

const DAY_MS = 86_400_000;

export const OVERVIEW_ROUTES: readonly Route[] = [
  {
    ...viewRoute('/overview', 'Overview', async (call, deps) => {
      const { now, viewer } = call;
      const overview = await readOverview(deps, call.scope, { now, crypto: viewer.account.crypto });
      const currencies = listCurrencies(overview.settledDays);
      const requestedCurrency = call.query.get('currency');
      const currency = currencies.find((one) => one === requestedCurrency) ?? currencies[0];
      const days = currency === undefined ? [] : buildDays(overview.settledDays, currency, now);
      return (
        <>
          <PageHead title="Overview" />
          <Attention overview={overview} />
          <div class="metrics">
            <Today overview={overview} days={days} currency={currency} />
            <Webhooks overview={overview} />
          </div>
          <Panel title="Balances">
            <BalanceTable balances={overview.balances} />
          </Panel>
          <Panel title="Thirty days">
            {currencies.length > 1 && (
              <p>
                {currencies.map((one) => (
                  <a
                    key={one}
                    class="button plain small"
                    href={call.href(`/overview?currency=${one}`)}
                    aria-current={one === currency ? 'true' : undefined}
                  >
                    {one}
                  </a>
                ))}
              </p>
            )}
            {currency === undefined ? (
              <p class="empty">No payment has settled in the last thirty days.</p>
            ) : (
              <VolumeChart days={days} currency={currency} />
            )}
          </Panel>
        </>
      );
    }),
    cost: 10,
  },
  /** @see docs/api.md#sandbox-clock */
  postRoute('/clock', 'clock.advance', {
    title: 'Move the clock',
    confirmation: {
      question: (form) =>
        `Move the time of this account's test data forward by ${field(form, 'days')} days? What waits in it ` +
        'happens: payments expire, refund windows close, webhooks are retried. The clock never goes back.',
      button: 'Move the clock',
    },
    handle: async (call, deps) => {
      const { account_id, livemode } = call.scope;
      const days = Number(field(call.form, 'days'));
      if (livemode) return 'not_found';
      if (!Number.isInteger(days) || days < 1) {
        return { go: '/overview', bad: 'Enter a whole number of days, from 1.' };
      }
      try {
        const { target } = await advanceClock(deps, account_id, { by_ms: days * DAY_MS });
        return { go: '/overview', good: `The clock advances to ${target ?? 'its target'}.` };
      } catch (error) {
        if (!(error instanceof Refusal)) throw error;
        return { go: '/overview', bad: error.message };
      }
    },
  }),
];

function Attention({ overview }: { overview: Overview }) {
  const call = useCall();
  const { needsAttention, disputesDue, receivables, webhooks } = overview;
  const owedAmounts = receivables.map(({ currency, owed }) => formatAmount(owed, currency));
  const rows = needsAttention.length + disputesDue.rows.length + owedAmounts.length;
  if (rows === 0 && webhooks.exhausted === 0) return null;
  return (
    <Panel title="Needs attention">
      <ul class="plainlist">
        {disputesDue.rows.map(({ _id, evidence_due_at }) => (
          <li key={_id}>
            <ResourceLink kind="dispute" id={_id} />
            {' needs your answer'}
            {evidence_due_at !== null && (
              <>
                {' until '}
                <When at={evidence_due_at} />
              </>
            )}
          </li>
        ))}
        {disputesDue.has_more && (
          <li>
            <a href={call.href('/disputes?status=needs_response')}>
              More disputes need your answer
            </a>
          </li>
        )}
        {owedAmounts.map((money) => (
          <li key={money}>{`You owe ${money}: a bank took back more than your balance held.`}</li>
        ))}
        {webhooks.exhausted > 0 && (
          <li>
            <a href={call.href('/webhooks/deliveries?status=exhausted')}>
              {`${webhooks.exhausted} events of the last 24 hours were not delivered`}
            </a>
          </li>
        )}
        {needsAttention.map(({ kind, id, attention }) => (
          <li key={id}>
            <ResourceLink kind={kind} id={id} />
            {`: ${attention.replaceAll('_', ' ')}. Our operators look into it.`}
          </li>
        ))}
      </ul>
    </Panel>
  );
}

interface TodayProps {
  overview: Overview;
  days: readonly Day[];
  currency: string | undefined;
}

function Today({ overview, days, currency }: TodayProps) {
  const today = days.at(-1);
  const rate = successRate(overview.today);
  const paymentCount = overview.today.reduce((total, { payments }) => total + payments, 0);
  return (
    <Panel title="Today">
      <Metric
        value={currency === undefined ? '–' : formatMoney(today?.amount ?? 0, currency)}
        text={`settled, ${formatCount(today?.payments ?? 0, 'payment')}`}
      />
      <Metric
        value={rate === null ? '–' : `${(rate * 100).toFixed(1)} %`}
        text={`success rate; ${formatCount(paymentCount, 'payment')} created today`}
      />
      <p class="muted small">Days are those of UTC.</p>
    </Panel>
  );
}

function Metric({ value, text }: { value: string; text: string }) {
  return (
    <p>
      <span class="metric">{value}</span>
      <br />
      <span class="muted">{text}</span>
    </p>
  );
}

function Webhooks({ overview }: { overview: Overview }) {
  const call = useCall();
  const { isRegistered, events, exhausted, waiting } = overview.webhooks;
  return (
    <Panel title="Webhook health">
      {isRegistered ? (
        <>
          <Metric
            value={String(exhausted)}
            text={`of ${events} events in 24 hours not delivered`}
          />
          <p>{`${waiting} wait for their next attempt.`}</p>
          <a href={call.href('/webhooks/deliveries')}>Show deliveries</a>
        </>
      ) : (
        <p>
          No endpoint is registered. <a href={call.href('/webhooks')}>Save one</a> to receive
          events.
        </p>
      )}
    </Panel>
  );
}

const WIDTH = 720;
const HEIGHT = 160;
const TOP = 4;
const GAP = 4;

/** Gives a day with any volume at least two pixels. */
export function buildBars(days: readonly Day[]) {
  const maxAmount = Math.max(1, ...days.map(({ amount }) => amount));
  const step = WIDTH / Math.max(1, days.length);
  const plotHeight = HEIGHT - TOP;
  return days.map(({ amount }, at) => {
    const height = amount <= 0 ? 0 : Math.max(2, Math.round((amount / maxAmount) * plotHeight));
    const [x, width] = [Math.round(at * step), Math.floor(step) - GAP];
    return { x, y: HEIGHT - height, width, height };
  });
}

export function VolumeChart({ days, currency }: { days: readonly Day[]; currency: string }) {
  const bars = buildBars(days);
  const total = days.reduce((sum, { amount }) => sum + amount, 0);
  const busiestDay = days.reduce<Day | undefined>(
    (a, b) => (a && a.amount >= b.amount ? a : b),
    undefined,
  );
  const money = (amount: number) => formatMoney(amount, currency);
  const [first, last] = [days[0]?.day ?? '', days.at(-1)?.day ?? ''];
  return (
    <>
      <div class="plot">
        <p class="scale" aria-hidden="true">
          <span>{money(busiestDay?.amount ?? 0)}</span>
          <span>{`${money(total)} in all`}</span>
        </p>
        <svg
          class="chart"
          viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
          preserveAspectRatio="none"
          role="img"
          aria-labelledby="chart-title chart-about"
        >
          <title id="chart-title">{`Settled volume in ${currency}, ${days.length} days`}</title>
          <desc id="chart-about">
            {`From ${first} to ${last}: ${money(total)} in all; most on ${busiestDay?.day ?? ''}, ${money(busiestDay?.amount ?? 0)}.`}
          </desc>
          {[TOP, HEIGHT / 2, HEIGHT].map((y) => (
            <line key={y} x1="0" y1={y} x2={WIDTH} y2={y} />
          ))}
          {days.map(({ day, amount }, at) => (
            <rect key={day} {...bars[at]}>
              <title>{`${day}: ${money(amount)}`}</title>
            </rect>
          ))}
        </svg>
        <p class="scale" aria-hidden="true">
          <span>{first}</span>
          <span>{last}</span>
        </p>
      </div>
      <details>
        <summary>As a table</summary>
        <Table
          label={`Settled volume in ${currency} by day`}
          rows={days.toReversed()}
          columns={[
            ['Day (UTC)', ({ day }) => day],
            ['Payments', ({ payments }) => payments],
            ['Volume', ({ amount }) => money(amount)],
          ]}
          none="None."
        />
      </details>
    </>
  );
}

const GETTING_STARTED = 'Getting started';

export const GETTING_STARTED_ROUTE = viewRoute(
  '/getting-started',
  GETTING_STARTED,
  async (call, deps) => {
    const steps = await listSteps(call, deps);
    const doneCount = steps.filter(({ isDone }) => isDone).length;
    return (
      <>
        <PageHead title={GETTING_STARTED} />
        <p class="muted">{`${doneCount} of ${steps.length} steps are done in ${call.viewer.env}.`}</p>
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
    );
  },
);

interface Step {
  title: string;
  isDone: boolean;
  children: ComponentChildren;
}

async function listSteps(call: Call, deps: PageDeps): Promise<Step[]> {
  const progress = await readSetupProgress(deps, call.scope, call.viewer.user.id);
  const command =
    `curl -sS ${deps.publicUrl}/v1/payments -H "Authorization: Bearer $API_KEY"` +
    ` -H 'Content-Type: application/json' -H "Idempotency-Key: first-payment"` +
    ` -d '${JSON.stringify(SAMPLE_PAYMENT)}'`;
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
          <Copyable label="command" text={command} />
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
