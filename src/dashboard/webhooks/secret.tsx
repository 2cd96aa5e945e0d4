import { ROLL_DELAYS_MS, type RollDelay } from '../../service/events/endpoints/manage';
import {
  type EndpointSummary,
  rollSecret,
  showEndpoint,
} from '../../service/events/endpoints/oldest';
import { Select } from '../frame/fields';
import { field } from '../frame/form';
import { Copyable, Note, PageHead, Panel, PostForm, When } from '../frame/parts';
import type { Answer, Call, PageDeps, Route } from '../frame/route';
import { BackToWebhooks } from './endpoint-settings';

export const SECRET_ROUTES: readonly Route[] = ['/webhooks', '/webhooks/endpoints/:id'].flatMap(
  buildRoutes,
);

function buildRoutes(base: string): Route[] {
  return [
    {
      method: 'post',
      path: `${base}/secret`,
      act: 'webhooks.secret',
      title: 'Signing secret',
      confirmation: {
        question: 'The secret signs every delivery. Anyone who has it can forge them.',
        button: 'Show signing secret',
        proof: 'password',
      },
      handle: showSecret,
    },
    {
      method: 'post',
      path: `${base}/roll`,
      act: 'webhooks.change',
      title: 'Roll the signing secret',
      confirmation: {
        question: (form) =>
          `Create a new secret that signs ${WORDS[parseAfter(form)]}? The current one cannot be restored.`,
        button: 'Roll signing secret',
        proof: 'step_up',
      },
      handle: roll,
    },
  ];
}

const WORDS: Readonly<Record<RollDelay, string>> = {
  now: 'from now on',
  '1h': 'in one hour',
  '24h': 'in 24 hours',
};

function parseAfter(form: URLSearchParams): RollDelay {
  const text = field(form, 'after');
  return text === '1h' || text === '24h' ? text : 'now';
}

interface SecretPanelProps {
  call: Call;
  endpoint: EndpointSummary;
  base?: string;
}

export function SecretPanel({ call, endpoint, base = '/webhooks' }: SecretPanelProps) {
  const { may } = call;
  const { next_active_from } = endpoint;
  return (
    <Panel title="Signing secret">
      <p class="muted">
        Each delivery is signed with it, in the header <code>Service-Signature</code>.
      </p>
      {next_active_from !== undefined && (
        <Note tone="note">
          {'A new secret signs from '}
          <When at={next_active_from} />
          {' on.'}
        </Note>
      )}
      <div class="buttons">
        {may('webhooks.secret') && (
          <PostForm call={call} path={`${base}/secret`} button="Show signing secret" tone="plain" />
        )}
        {may('webhooks.change') && (
          <PostForm call={call} path={`${base}/roll`} button="Roll signing secret" tone="danger">
            <Select
              label="New secret signs"
              name="after"
              options={[
                ['now', 'Now'],
                ['1h', 'In 1 hour'],
                ['24h', 'In 24 hours'],
              ]}
            />
          </PostForm>
        )}
      </div>
    </Panel>
  );
}

async function showSecret(call: Call, deps: PageDeps): Promise<Answer> {
  const endpoint = await showEndpoint(deps, { ...call.scope, endpoint_id: call.params['id'] });
  if (endpoint === null) return 'not_found';
  const { signing_secret, next_secret, next_active_from } = endpoint;
  return (
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
        <BackToWebhooks call={call} />
      </Panel>
    </>
  );
}

async function roll(call: Call, deps: PageDeps): Promise<Answer> {
  const after = parseAfter(call.form);
  const key = { ...call.scope, endpoint_id: call.params['id'] };
  const newSecret = await rollSecret(deps, key, ROLL_DELAYS_MS[after]);
  if (newSecret === null) return 'not_found';
  return (
    <>
      <PageHead title="New signing secret" />
      <Note tone="note">
        {after === 'now' ? (
          'It signs from now on: deliveries do not verify until you use it.'
        ) : (
          <>
            {'It signs from '}
            <When at={newSecret.active_from} />
            {' on; until then the current one does.'}
          </>
        )}
      </Note>
      <Panel>
        <Copyable label="signing secret" text={newSecret.signing_secret} />
        <BackToWebhooks call={call} />
      </Panel>
    </>
  );
}
