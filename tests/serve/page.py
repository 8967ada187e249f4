"""The page in a real browser (headless Chromium; skipped where there is none): all three tabs, files, keys, light and dark."""

import os

from browser import Browser, program
from server import Server, png

DROP = """(() => {
  const data = new DataTransfer();
  data.items.add(new File([%s], %s, {type: "text/plain"}));
  document.getElementById("drop").dispatchEvent(new DragEvent("drop", {dataTransfer: data, bubbles: true, cancelable: true}));
})()"""


def shot(t, browser, name):
    """Written to the folder RONDO_SCREENSHOTS, for inspection."""
    folder = os.environ.get("RONDO_SCREENSHOTS")
    if folder:
        browser.screenshot(os.path.join(folder, name + ".png"))


def generate_tab(t, server, browser):
    browser.open(server.address + "/")
    browser.wait("!document.getElementById('write').hidden")
    browser.js("$('prompt').value = 'the old house'; $('max_tokens').value = 3000; $('seed').value = 7; $('prompt').focus()")
    browser.press("Enter", 13, modifiers=2)  # Ctrl+Enter
    early = browser.wait("$('output').textContent.length > 40 ? $('output').textContent.length : 0")
    later = browser.wait(f"$('output').textContent.length > {early + 40} ? $('output').textContent.length : 0")
    assert browser.js("$('go').disabled && !$('stop').disabled"), "the buttons do not show that text is generated"
    browser.press("Escape", 27)
    browser.wait("!$('go').disabled")
    stopped = browser.js("$('output').textContent.length")
    assert later <= stopped < 3000, (early, later, stopped)
    browser.js("$('max_tokens').value = 60; $('save-state').value = 'kept'; $('write-form').requestSubmit()")
    browser.wait("!$('go').disabled && $('pace').textContent.includes('prompt 13 tokens')")
    assert browser.js("!$('legend').hidden && /^-?[0-9.]+$/.test($('mean-gain').textContent)"), "no gain of the state is shown"
    assert browser.js("[...$('output').querySelectorAll('span')].filter((s) => s.title.endsWith('nats')).length") >= 30
    text = browser.js("$('output').textContent")
    shot(t, browser, "generate-light")
    browser.js("$('save-state').value = ''; $('write-form').requestSubmit()")
    browser.wait("!$('go').disabled && $('pace').textContent.includes('prompt 13 tokens')")
    assert browser.js("$('output').textContent") == text, "the same seed gave another text"
    assert browser.js("$('states').tBodies[0].textContent").startswith("kept")


def states_of_files(t, server, browser):
    document = "the old house on the hill was quiet " * 800
    browser.js(DROP % (repr(document), repr("my book.txt")))
    browser.wait("$('states').tBodies[0].textContent.includes('my-book')")
    assert browser.js("$('states').tBodies[0].textContent.includes('28,800')"), "the number of tokens is not shown"
    browser.js("$('from-state').value = 'my-book'; $('max_tokens').value = 20; $('write-form').requestSubmit()")
    browser.wait("!$('go').disabled && $('pace').textContent.includes('plus 28800 from the state')")
    browser.js("[...document.querySelectorAll('#states tr')].find((r) => r.textContent.startsWith('my-book')).querySelectorAll('button')[1].click()")
    browser.wait("$('states').tBodies[0].textContent.includes('my-book-2')")
    path = t.folder / "restored.state"
    path.write_bytes(server.call("GET", "/states/my-book")[2])
    browser.choose_file("#file", path)
    browser.wait("$('states').tBodies[0].textContent.includes('restored')")
    path.write_bytes(b"no state")
    browser.choose_file("#file", path)
    browser.wait("!$('message').hidden && $('message').textContent.includes('the uploaded file') && $('drop-note').textContent === ''")
    shot(t, browser, "states-error")


def other_tabs(t, server, browser):
    browser.js("$('tab-translate').click(); $('source').value = 'abcd'; $('translate-form').requestSubmit()")
    browser.wait("$('target').value.length > 0 && $('translations').querySelectorAll('li').length === 4")
    assert browser.js("$('attention').querySelectorAll('td').length") > 4, "no attention is drawn"
    assert browser.js("$('source-language').textContent + $('target-language').textContent") == "deen"
    shot(t, browser, "translate-light")
    path = t.folder / "picture.png"
    path.write_bytes(png(24, 16, seed=3))
    browser.js("$('tab-classify').click()")
    browser.choose_file("#image-file", path)
    browser.wait("$('classes').querySelectorAll('.bar').length === 2")
    assert abs(browser.js("[...$('classes').querySelectorAll('.bar')].map((b) => parseFloat(b.lastChild.textContent)).reduce((a, b) => a + b)") - 100) < 0.3
    browser.wait("$('heat').querySelectorAll('img').length === 2 && [...$('heat').querySelectorAll('img')].every((i) => i.naturalWidth > 0)")
    shot(t, browser, "classify-light")


def page(t):
    """the page in Chromium: streaming, Stop, shading, states from files, translation, images, dark, narrow"""
    if program() is None:
        t.say("skipped: no Chromium (apt-get install chromium)")
        return
    with Server(t.binary, [t.run("language"), "de-en=" + t.run("translation"), t.run("images")]) as server, Browser() as browser:
        generate_tab(t, server, browser)
        assert not browser.problems, browser.problems
        states_of_files(t, server, browser)
        browser.problems = [p for p in browser.problems if "400" not in p]  # the refused file
        other_tabs(t, server, browser)
        light = browser.js("getComputedStyle(document.body).backgroundColor")
        browser.dark(True)
        dark = browser.js("getComputedStyle(document.body).backgroundColor")
        assert sum(map(int, light[4:-1].split(","))) > 600 > 200 > sum(map(int, dark[4:-1].split(","))), (light, dark)
        for tab in ("write", "translate", "classify"):
            browser.js(f"$('tab-{tab}').click()")
            shot(t, browser, tab + "-dark")
        browser.resize(400, 800)
        for tab in ("write", "translate", "classify"):
            browser.js(f"$('tab-{tab}').click()")
            shot(t, browser, tab + "-narrow")
            wide = browser.js("[...document.querySelectorAll('body *')].filter((e) => e.getBoundingClientRect().right > 400).map((e) => e.tagName + '#' + e.id)")
            assert browser.js("document.documentElement.scrollWidth <= 400"), f"{tab} is wider than a telephone: {wide}"
        assert not browser.problems, browser.problems


def page_with_key(t):
    """the page asks for an API key once"""
    if program() is None:
        t.say("skipped: no Chromium (apt-get install chromium)")
        return
    key = t.folder / "page-key"
    key.write_text("0123456789abcdef0123\n")
    with Server(t.binary, [t.run("language")], "--api-key-file", key) as server, Browser() as browser:
        browser.open(server.address + "/")
        browser.wait("document.getElementById('key-dialog').open")
        browser.js("$('key').value = '0123456789abcdef0123'; document.querySelector('#key-dialog button').click()")
        browser.wait("!document.getElementById('write').hidden")
        browser.js("$('prompt').value = 'the'; $('max_tokens').value = 5; $('write-form').requestSubmit()")
        browser.wait("$('pace').textContent.includes('prompt 3 tokens')")
        assert browser.js("!$('key-dialog').open")


TRIALS = {"page": page, "page_with_key": page_with_key}
