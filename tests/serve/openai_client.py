"""The real `openai` client from PyPI against a server: python openai_client.py http://127.0.0.1:PORT. Prints what it did."""

import sys

import openai


def expect(kind, work):
    try:
        work()
    except kind as error:
        assert error.status_code and error.message, error
        return
    raise AssertionError(f"expected {kind.__name__}")


def main(address):
    client = openai.OpenAI(base_url=address + "/v1", api_key="none", max_retries=0)
    model = client.models.list().data[0].id
    plain = client.completions.create(model=model, prompt="This is", max_tokens=20, seed=1, logprobs=2)
    assert plain.usage.completion_tokens == 20 and len(plain.choices[0].logprobs.tokens) == 20
    stream = client.completions.create(model=model, prompt="This is", max_tokens=20, seed=1, stream=True,
                                       stream_options={"include_usage": True})
    chunks = list(stream)
    assert "".join(c.choices[0].text for c in chunks if c.choices) == plain.choices[0].text
    assert chunks[-1].usage == plain.usage, (chunks[-1].usage, plain.usage)
    messages = [{"role": "user", "content": "Hello"}]
    chat = client.chat.completions.create(model=model, messages=messages, max_tokens=20, seed=1, logprobs=True, top_logprobs=2)
    pieces = list(client.chat.completions.create(model=model, messages=messages, max_tokens=20, seed=1, stream=True))
    assert "".join(p.choices[0].delta.content or "" for p in pieces) == chat.choices[0].message.content
    assert chat.choices[0].logprobs.content[0].top_logprobs
    kept = client.completions.create(model=model, prompt="This is", max_tokens=5, seed=1, extra_body={"save_state": "kept"})
    more = client.completions.create(model=model, prompt="", max_tokens=5, seed=1, extra_body={"state": "kept"})
    assert more.usage.prompt_tokens_details.cached_tokens == kept.usage.total_tokens
    expect(openai.NotFoundError, lambda: client.completions.create(model="gpt", prompt="a"))
    expect(openai.BadRequestError, lambda: client.completions.create(model=model, prompt={"a": 1}))
    expect(openai.UnprocessableEntityError, lambda: client.completions.create(model=model, prompt="a", max_tokens=10 ** 6))
    print(f"openai {openai.__version__}: models, completions and chats, plain and streamed, usage, logprobs, states, typed errors")


if __name__ == "__main__":
    main(sys.argv[1])
