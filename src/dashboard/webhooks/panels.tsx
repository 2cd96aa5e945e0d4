import { EVENT_TYPES } from '../../domain/event';
import type { EndpointDocument } from '../../store/endpoints';
import { Select } from '../fields';
import { Note, Panel, PostForm, When } from '../parts';
import type { Call } from '../route';
import { SNIPPETS } from './snippets';

/** Panel in which the secret is shown and rolled. */
export function SecretPanel({ call, endpoint }: { call: Call; endpoint: EndpointDocument }) {
  const { viewer, href, may, now } = call;
  const next = endpoint.secrets.find(({ active_from }) => active_from > now.toISOString());
  return (
    <Panel title="Signing secret">
      <p class="muted">
        Each delivery is signed with it, in the header <code>Service-Signature</code>.
      </p>
      {next !== undefined && endpoint.secrets.length > 1 && (
        <Note tone="note">
          {'A new secret signs from '}
          <When at={next.active_from} />
          {' on.'}
        </Note>
      )}
      <div class="buttons">
        {may('webhooks.secret') && (
          <PostForm
            viewer={viewer}
            action={href('/webhooks/secret')}
            button="Show signing secret"
            tone="plain"
          />
        )}
        {may('webhooks.change') && (
          <PostForm
            viewer={viewer}
            action={href('/webhooks/roll')}
            button="Roll signing secret"
            tone="danger"
          >
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

/** Panel that sends a test event. */
export function TestPanel({ call }: { call: Call }) {
  return (
    <Panel title="Test">
      <p class="muted">
        A test is signed and listed as any other event, says <code>"test": true</code> in its data,
        and is tried once.
      </p>
      <PostForm
        viewer={call.viewer}
        action={call.href('/webhooks/test')}
        button="Send test event"
        busy="Waiting for the answer…"
      >
        <Select
          label="Event type"
          name="type"
          value="payment.settled"
          options={EVENT_TYPES.map((type) => [type, type] as const)}
        />
      </PostForm>
    </Panel>
  );
}

/** Panel of code that verifies a delivery. */
export function Snippets() {
  return (
    <Panel title="Verify a delivery">
      <p class="muted">
        Use the raw body as it came, and refuse what does not verify. Put the secret where your
        others are; it is never part of the code.
      </p>
      {SNIPPETS.map(({ language, code }) => (
        <details key={language}>
          <summary>{language}</summary>
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, also by keyboard */}
          <pre tabIndex={0}>{code}</pre>
        </details>
      ))}
    </Panel>
  );
}
