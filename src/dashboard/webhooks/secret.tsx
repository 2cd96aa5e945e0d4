import { AFTER_MS, type After, rollSecret, showEndpoint } from '../../merchants/endpoint';
import type { DashboardDeps } from '../deps';
import { field } from '../form';
import { Copyable, Note, PageHead, Panel, When } from '../parts';
import type { Answer, Call, Route } from '../route';
import { endpointDeps } from './acting';

export const SECRET_ROUTES: readonly Route[] = [
  {
    method: 'post',
    path: '/webhooks/secret',
    act: 'webhooks.secret',
    title: 'Signing secret',
    ask: {
      question: 'The secret signs every delivery. Who has it can forge them.',
      button: 'Show signing secret',
      password: true,
    },
    handle: showSecret,
  },
  {
    method: 'post',
    path: '/webhooks/roll',
    act: 'webhooks.change',
    title: 'Roll the signing secret',
    ask: {
      question: (form) =>
        `Make a new secret that signs ${WORDS[afterOf(form)]}? The present one can't be had back.`,
      button: 'Roll signing secret',
      password: true,
    },
    handle: roll,
  },
];

const WORDS: Readonly<Record<After, string>> = {
  now: 'from now on',
  '1h': 'in one hour',
  '24h': 'in 24 hours',
};

function afterOf(form: URLSearchParams): After {
  const given = field(form, 'after');
  return given === '1h' || given === '24h' ? given : 'now';
}

async function showSecret(call: Call, deps: DashboardDeps): Promise<Answer> {
  const { account_id: accountId, livemode } = call.scope;
  const shown = await showEndpoint(endpointDeps(call, deps), { accountId, livemode });
  if (shown === null) return 'not_found';
  const { signing_secret, next_secret, next_active_from } = shown;
  return {
    page: (
      <>
        <PageHead title="Signing secret" />
        <Panel>
          <Copyable label="signing secret" text={signing_secret} />
          {next_secret !== undefined && next_active_from !== undefined && (
            <>
              <p>
                {'From '}
                <When at={next_active_from} />
                {' on this one signs:'}
              </p>
              <Copyable label="next signing secret" text={next_secret} />
            </>
          )}
          <a href={call.href('/webhooks')}>Back to webhooks</a>
        </Panel>
      </>
    ),
  };
}

async function roll(call: Call, deps: DashboardDeps): Promise<Answer> {
  const { account_id: accountId, livemode } = call.scope;
  const after = afterOf(call.form);
  const rolled = await rollSecret(
    endpointDeps(call, deps),
    { accountId, livemode },
    AFTER_MS[after],
  );
  if (rolled === null) return 'not_found';
  return {
    page: (
      <>
        <PageHead title="New signing secret" />
        <Note tone="note">
          {after === 'now' ? (
            'It signs from now on: deliveries do not verify until you use it.'
          ) : (
            <>
              {'It signs from '}
              <When at={rolled.active_from} />
              {' on; until then the present one does.'}
            </>
          )}
        </Note>
        <Panel>
          <Copyable label="signing secret" text={rolled.signing_secret} />
          <a href={call.href('/webhooks')}>Back to webhooks</a>
        </Panel>
      </>
    ),
  };
}
