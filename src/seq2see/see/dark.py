"""Dark figures: every hue stays, light and dark change places."""

from colorsys import hls_to_rgb, rgb_to_hls
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.collections import Collection
from matplotlib.colors import Colormap, ListedColormap, to_rgba
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.text import Annotation, Text

DARKEST, LIGHTEST = 0.09, 0.93  # lightness that white and black change to
OF_PICTURES = ("gray", "inferno")  # colour maps of photographs, and of heat drawn over them


def dark(colour: Any) -> tuple[float, float, float, float]:
    """Mirror the lightness of a colour and keep its hue and opacity."""
    red, green, blue, opacity = to_rgba(colour)
    hue, lightness, saturation = rgb_to_hls(red, green, blue)
    mirrored = LIGHTEST - (LIGHTEST - DARKEST) * lightness
    return (*hls_to_rgb(hue, mirrored, saturation), opacity)


def darken(figure: Figure) -> None:
    """Change all colours of a figure but those of pictures, in place."""
    figure.draw_without_rendering()  # ticks come into being when they are drawn
    for image in figure.findobj(AxesImage):
        assert isinstance(image, AxesImage)
        values = image.get_array()
        assert values is not None
        if values.ndim == 2 and image.get_cmap().name not in OF_PICTURES:
            image.set_cmap(_mirrored(image.get_cmap()))
    for artist in set(figure.findobj()):
        _darken(artist)


def _mirrored(colours: Colormap) -> Colormap:
    return ListedColormap([dark(colour) for colour in colours(np.arange(colours.N))])


def _darken(artist: Artist) -> None:
    if isinstance(artist, Text):
        _darken_text(artist)
    elif isinstance(artist, Line2D):
        face, edge = artist.get_markerfacecolor(), artist.get_markeredgecolor()
        artist.set_color(dark(artist.get_color()))
        artist.set_markerfacecolor(dark(face))
        artist.set_markeredgecolor(dark(edge))
    elif isinstance(artist, Patch):
        face, edge = artist.get_facecolor(), artist.get_edgecolor()
        artist.set_facecolor(dark(face))
        artist.set_edgecolor(dark(edge))
    elif isinstance(artist, Collection) and artist.get_array() is None:
        faces, edges = np.atleast_2d(artist.get_facecolor()), np.atleast_2d(artist.get_edgecolor())
        artist.set_facecolor([dark(colour) for colour in faces if len(colour)])
        artist.set_edgecolor([dark(colour) for colour in edges if len(colour)])


def _darken_text(text: Text) -> None:
    text.set_color(dark(text.get_color()))
    if (box := text.get_bbox_patch()) is not None:
        _darken(box)
    if isinstance(text, Annotation) and text.arrow_patch is not None:
        _darken(text.arrow_patch)
