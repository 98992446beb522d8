cdef extern from *:
    """
    /* As ``object.__new__`` of a class that has none of its own. */
    static inline PyObject *bm25rag_new(PyObject *kind) {
        if (!PyType_Check(kind)) {
            PyErr_SetString(PyExc_TypeError, "the kind of what is made must be a class");
            return NULL;
        }
        return PyType_GenericNew((PyTypeObject *)kind, NULL, NULL);
    }
    """
    object new_object "bm25rag_new" (object kind)
    int set_attribute "PyObject_GenericSetAttr" (object instance, object name, object value) except -1
    int append "PyList_Append" (object items, object item) except -1
